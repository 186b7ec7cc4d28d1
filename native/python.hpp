// What Python says to the kernels, checked: used by the module's parts, which alone know Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace bemf {

namespace nb = nanobind;

template <class T, int dimensions> using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<nb::ndim<3>, nb::c_contig, nb::device::cpu>;  // a block's (rows, columns, lanes)
using ReadFactors = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Blocks = std::vector<T>;

std::vector<const InstructionSet*> available();               // of this machine, best first
const InstructionSet& instruction_set(const std::string& name);
std::vector<int> lanes(const InstructionSet& set, int n_scores, bool exact);  // of each block of scores

inline void require(bool holds, const char* message) {
    if (!holds) throw nb::value_error(message);
}

inline bool is_exact(const nb::dlpack::dtype& type) {
    if (type == nb::dtype<double>()) return true;
    require(type == nb::dtype<float>(), "factors must be float32 or float64");
    return false;
}

// The rows of a half-sweep, as far as it can be seen without going through them.
inline void check_sweep(const Array<const int64_t, 1>& indptr, const Array<const int32_t, 1>& indices,
                        const Array<const uint8_t, 1>& scores, size_t n_rows) {
    require(indptr.shape(0) == n_rows + 1, "indptr must have one entry more than there are rows");
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == int64_t(indices.shape(0)) &&
                indices.shape(0) == scores.shape(0),
            "indptr must go from 0 to the number of indices, which is that of scores");
}

// Lets Python see Ctrl-C and tells it how far the work is; keeps what Python raised until the work ends.
class Tick {
  public:
    explicit Tick(nb::object progress) : progress_(std::move(progress)) {}

    bool operator()(double share) {
        const nb::gil_scoped_acquire gil;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (!progress_.is_none()) progress_(share);
        } catch (...) {
            raised_ = std::current_exception();
        }
        return !raised_;
    }
    [[noreturn]] void raise() { std::rethrow_exception(raised_); }

  private:
    nb::object progress_;
    std::exception_ptr raised_;
};

void add_bernoulli(nb::module_& m);
void add_gaussian(nb::module_& m);
void add_simplex(nb::module_& m);

}  // namespace bemf
