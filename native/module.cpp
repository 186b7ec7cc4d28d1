// The Python module: arrays in, arrays out. The loops are elsewhere.
#include <cstring>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "grouping.hpp"
#include "python.hpp"
#include "sweeps.hpp"

namespace bemf {

std::vector<const InstructionSet*> available() {
    std::vector<const InstructionSet*> sets;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        sets.push_back(&avx512::instruction_set);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&avx2::instruction_set);
    sets.push_back(&sse2::instruction_set);
#else
    sets.push_back(&baseline::instruction_set);
#endif
    return sets;
}

const InstructionSet& instruction_set(const std::string& name) {
    std::string names;
    for (const InstructionSet* set : available()) {
        if (set->name == name) return *set;
        names += std::string(names.empty() ? "" : ", ") + set->name;
    }
    throw nb::value_error(("this machine has no instruction set '" + name + "'; it has " + names).c_str());
}

std::vector<int> lanes(const InstructionSet& set, int n_scores, bool exact) {
    require(n_scores > 0 && n_scores <= 256, "from 1 to 256 scores");
    std::vector<int> widths;
    for (int left = n_scores; left > 0; left -= widths.back()) widths.push_back(set.lanes(left, exact));
    return widths;
}

namespace {

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const InstructionSet* set : available()) names.push_back(set->name);
    return names;
}

void check_rows(Array<const int64_t, 1> indptr, Array<const int32_t, 1> indices, Array<const uint8_t, 1> scores,
                int64_t n_columns, int n_scores) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    const size_t n_rows = indptr.shape(0) - 1, n = indices.shape(0);
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == int64_t(n) && scores.shape(0) == n,
            "indptr must go from 0 to the number of indices, which is that of scores");
    bool rising = true, inside = true;
    for (size_t row = 0; row < n_rows; ++row) rising &= indptr.data()[row] <= indptr.data()[row + 1];
    require(rising, "indptr must not fall");
    for (size_t j = 0; j < n; ++j)
        inside &= indices.data()[j] >= 0 && indices.data()[j] < n_columns && scores.data()[j] < n_scores;
    require(inside, "an index or a score is out of range");
}

nb::tuple grouped(Array<const int32_t, 1> keys, int64_t n_keys) {
    const int64_t n = int64_t(keys.shape(0));
    for (int64_t j = 0; j < n; ++j) require(keys.data()[j] >= 0 && keys.data()[j] < n_keys, "a key is out of range");
    int64_t* indptr = new int64_t[n_keys + 1];
    nb::capsule free_indptr(indptr, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
    int64_t* order = new int64_t[std::max<int64_t>(n, 1)];
    nb::capsule free_order(order, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
    {
        const nb::gil_scoped_release no_gil;
        group(keys.data(), n, n_keys, indptr, order);
    }
    using Out = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
    return nb::make_tuple(Out(indptr, {size_t(n_keys + 1)}, free_indptr), Out(order, {size_t(n)}, free_order));
}

// Zeros for a block's (rows, columns, lanes), aligned to a cache line, in large pages where there are any.
nb::ndarray<nb::numpy, nb::ndim<3>> factors(size_t rows, size_t columns, size_t lanes, bool exact) {
    const size_t bytes = rows * columns * lanes * (exact ? 8 : 4);
    Memory memory = aligned(bytes);
#if defined(__linux__)
    const uintptr_t page = 1 << 21, start = reinterpret_cast<uintptr_t>(memory.get());
    const uintptr_t from = (start + page - 1) / page * page, to = (start + bytes) / page * page;
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);  // no matter if it cannot
#endif
    std::memset(memory.get(), 0, bytes);
    void* data = memory.get();
    nb::capsule owner(memory.release(), [](void* held) noexcept { FreeAligned()(held); });
    return nb::ndarray<nb::numpy, nb::ndim<3>>(data, {rows, columns, lanes}, owner, {},
                                               exact ? nb::dtype<double>() : nb::dtype<float>());
}

std::vector<int> blocks(const std::string& isa, int n_scores, bool exact) {
    return lanes(instruction_set(isa), n_scores, exact);
}

}  // namespace
}  // namespace bemf

NB_MODULE(_native, m) {
    using namespace bemf;
    using namespace nb::literals;
    nb::set_leak_warnings(false);  // a script may end while it holds a model
    m.doc() = "The hot loops. Called by bemf.engines.native and bemf.ratings; not for use elsewhere.";
    nb::class_<Threads>(m, "Threads", "Threads for one run; they end with this object.")
        .def("__init__",
             [](Threads* self, int n) {
                 require(n >= 1, "there must be at least 1 thread");
                 new (self) Threads(n);
             }, "n"_a);
    m.def("instruction_sets", &instruction_sets, "The instruction sets of this machine, best first.");
    m.def("blocks", &blocks, "isa"_a, "n_scores"_a, "exact"_a, "The lanes of each block that scores are spread over.");
    m.def("factors", &factors, "rows"_a, "columns"_a, "lanes"_a, "exact"_a, "A block of aligned zeros.");
    m.def("check_rows", &check_rows, "indptr"_a, "indices"_a, "scores"_a, "n_columns"_a, "n_scores"_a,
          "Refuses rows that would lead a kernel out of its arrays.");
    m.def("group", &grouped, "keys"_a, "n_keys"_a, "A stable counting sort: (indptr, order).");
    add_bernoulli(m);
    add_gaussian(m);
    add_simplex(m);
}
