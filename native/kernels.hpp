// What the module and the kernels, compiled once per instruction set, say to each other: plain structs
// and function pointers.
#pragma once

#include <stdint.h>

namespace bemf {

enum class Solver : int { look, gradient, bound };
enum class Activation : int { logistic, probit, cauchit };

// One half-sweep of a block of scores: the rows of `self` change, those of `other` are only read.
// Factors lie as [row][column][lane]; with biases, column 0 holds them. Lanes beyond the block's scores hold
// zeros and stay so: their offset is such that nothing ever comes to them.
struct HalfSweep {
    const int64_t* indptr;
    const int32_t* indices;
    const uint8_t* scores;
    void* self;
    const void* other;
    const void* offset;   // [lane]
    const void* one_hot;  // [score][lane]
    int64_t n_ratings;
    int n_columns;
    int n_scores;  // real ones among the block's lanes
    bool biased;
    bool measured;  // whether the log-likelihood is wanted
    Solver solver;
    Activation activation;
    double learning_rate;
    double regularization;
};

struct Totals {
    double log_likelihood;
    double squares;  // of the factors as they were before the step
};

// The probabilities of pairs, as far as one block of scores goes: psi of each, not yet made to sum to one.
struct Pairs {
    const int32_t* users;  // out of range (-1: unknown): the block's part of the row becomes NaN
    const int32_t* items;
    const void* user_factors;  // [row][column][lane]
    const void* item_factors;
    const void* offset;  // [lane]
    void* probabilities;  // [pair][score], from the block's first score on
    int64_t n_users;
    int64_t n_items;
    int n_columns;
    int n_scores;    // of the block
    int all_scores;  // of the scale: from one pair's probabilities to the next's
    bool biased;
    Activation activation;
};

// Candidates for recommendation, side by side: W of them make a group, [group][score][column][candidate].
// A user is [score][column]. Candidates beyond the last are zeros.
struct Candidates {
    const void* groups;
    const void* offset;  // [score]
    const void* worths;  // [score]: what each score is worth
    int n_columns;
    int n_scores;
    bool biased;
    Activation activation;
};

// A half-sweep's two halves, `sums` over some of a row's ratings and `solve` with a row's whole sums;
// `rows` does both for each row of a range. Totals are added to.
struct BernoulliKernels {
    void (*rows)(const HalfSweep&, int64_t first, int64_t last, void* sums, Totals&);
    void (*sums)(const HalfSweep&, int64_t row, int64_t begin, int64_t end, void* sums, Totals&);
    void (*solve)(const HalfSweep&, int64_t row, const void* sums, Totals&);
    int64_t sums_size;  // numbers, not bytes
};

enum class PointSolver : int { look, descent, multiplication };

// One half-sweep of a factorization that predicts points. Rows have `n_columns`, whole vectors.
struct PointSweep {
    const int64_t* indptr;
    const int32_t* indices;
    const uint8_t* scores;
    void* self;
    const void* other;
    const void* targets;  // [score]: what is to be predicted
    const void* rates;    // [column]: the learning rate, 0 for columns that stay as they are
    int n_columns;
    bool measured;
    PointSolver solver;
    double regularization;
};

struct PointPairs {
    const int32_t* users;  // out of range (-1: unknown): NaN
    const int32_t* items;
    const void* user_factors;
    const void* item_factors;
    void* predictions;
    int64_t n_users;
    int64_t n_items;
    int n_columns;
};

// SVD++: a pass over the users, one after the other, that moves the rows of both sides.
struct SvdppSweep {
    const int64_t* indptr;
    const int32_t* indices;
    const uint8_t* scores;
    void* users;
    void* items;
    void* implicit;
    void* sums;           // of the implicit rows of each user; if given, these are all that is asked for
    const void* targets;  // [score]
    const void* user_rates;  // [column], each
    const void* item_rates;
    const void* implicit_rates;
    int n_columns;
    bool moves_implicit;
    double regularization;
};

// A half-sweep of a factorization whose D products make one distribution. Rows are [column][score].
struct SimplexSweep {
    const int64_t* indptr;
    const int32_t* indices;
    const uint8_t* scores;
    void* self;
    const void* other;
    int n_columns;
    int n_scores;
    int padded_scores;
    bool dirichlet;  // or softmax
    bool moves;
    double learning_rate;
    double regularization;
    double log_hit;  // of the distributions that ratings stand for, under Dirichlet: the rating's share,
    double log_miss;  // and any other's
};

struct SimplexPairs {
    const int32_t* users;  // out of range (-1: unknown): NaN
    const int32_t* items;
    const void* user_factors;
    const void* item_factors;
    void* probabilities;  // [pair][score]
    int64_t n_users;
    int64_t n_items;
    int n_columns;
    int n_scores;
    int padded_scores;
    bool dirichlet;
};

struct InstructionSet {
    const char* name;
    int (*lanes)(int n_scores, bool exact);  // of the first block of so many scores; exact: float64
    BernoulliKernels (*bernoulli)(const HalfSweep&, int lanes, bool exact);
    void (*bernoulli_forecast)(const Pairs&, int64_t first, int64_t last, int lanes, bool exact);
    int (*group_size)(bool exact);
    // What a user would think of some groups' candidates: their expected worth and largest probability.
    void (*bernoulli_rate)(const Candidates&, const void* user, int64_t first_group, int64_t last_group, void* worth,
                           void* reliability, bool exact);
    int (*point_lanes)(int n_columns, bool exact);  // of the vectors that rows of so many columns are padded to
    void (*point_rows)(const PointSweep&, int64_t first, int64_t last, Totals&, int lanes, bool exact);
    void (*point_pairs)(const PointPairs&, int64_t first, int64_t last, int lanes, bool exact);
    void (*svdpp_users)(const SvdppSweep&, int64_t first, int64_t last, Totals&, int lanes, bool exact);
    void (*simplex_rows)(const SimplexSweep&, int64_t first, int64_t last, void* room, Totals&, int lanes, bool exact);
    void (*simplex_pairs)(const SimplexPairs&, int64_t first, int64_t last, int lanes, bool exact);
    void (*normalize)(void* probabilities, int n_scores, int64_t first, int64_t last, bool exact);
};

#if defined(__x86_64__)
namespace sse2 { extern const InstructionSet instruction_set; }
namespace avx2 { extern const InstructionSet instruction_set; }
namespace avx512 { extern const InstructionSet instruction_set; }
#else
namespace baseline { extern const InstructionSet instruction_set; }
#endif

}  // namespace bemf
