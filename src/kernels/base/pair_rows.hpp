// Sparse rows, and growing rows of (key, value) pairs: label counts of nodes, sparse weights, and lists of the nodes
// that have a feature.
//
// Rows are stored in chunks that never move. A row that outgrows its capacity is copied to new memory for at least
// twice as many pairs as it has. Its old memory stays unused, so the chunks take at most about twice the memory that
// the rows need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/memory.hpp"

namespace mlca::MLCA_LEVEL {

// The non-zeros of a row: features in ascending order, and their values.
struct SparseRow {
    const std::int32_t* keys;
    const double* values;
    std::int64_t n;
};

// Rows in CSR form, with features in ascending order and without explicit zeros.
struct SparseRows {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const double* data;

    SparseRow operator[](std::int64_t j) const noexcept { return {indices + indptr[j], data + indptr[j], indptr[j + 1] - indptr[j]}; }
};

// Scatters one value per non-zero of a row into an array of zeros; the destructor resets them to zero.
template <class T>
class Scattered {
public:
    template <class ValueAt>
    Scattered(Array<T>& target, const SparseRow& row, ValueAt value_at) : target_(target), row_(row) {
        for (std::int64_t p = 0; p < row.n; ++p) target_[row.keys[p]] = value_at(p);
    }
    ~Scattered() {
        for (std::int64_t p = 0; p < row_.n; ++p) target_[row_.keys[p]] = T{};
    }
    Scattered(const Scattered&) = delete;
    Scattered& operator=(const Scattered&) = delete;

private:
    Array<T>& target_;
    SparseRow row_;
};

template <class Value>
class PairRows {
public:
    struct Row {
        std::int32_t* keys = nullptr;
        Value* values = nullptr;
        std::int32_t length = 0;
        std::int32_t room = 0;
    };

    PairRows() = default;
    PairRows(const PairRows& other) {
        rows_.reserve(other.rows_.size());
        for (const Row& row : other.rows_) {
            reserve(row.length);
            open(row.keys, row.values, row.length);
        }
    }
    PairRows(PairRows&&) noexcept = default;
    PairRows& operator=(PairRows&&) noexcept = default;

    std::int64_t size() const noexcept { return rows_.size(); }
    const Row& operator[](std::int64_t row) const noexcept { return rows_[row]; }
    Row& operator[](std::int64_t row) noexcept { return rows_[row]; }

    // Reserve memory for one more row with `pairs` pairs, so that `open` cannot fail.
    void reserve(std::int64_t pairs) {
        if (rows_.size() == rows_.capacity()) rows_.reserve(rows_.size() + rows_.size() / 2 + 16);
        if (free_ < pairs) add_chunk(pairs);
    }

    // Grow to at least n rows; new rows are empty. (No fill value is passed, because GCC copies one much more slowly
    // than it creates an empty row.)
    void resize(std::int64_t n) {
        if (n > size()) rows_.resize(n);
    }

    // Add an empty row with capacity for `room` pairs, for which `reserve` must have been called.
    void open(std::int64_t room) noexcept { rows_.push_back(take(room)); }

    // Add a row that holds the given pairs.
    void open(const std::int32_t* keys, const Value* values, std::int64_t n) noexcept {
        open(n);
        Row& row = rows_.back();
        std::copy_n(keys, n, row.keys);
        std::copy_n(values, n, row.values);
        row.length = static_cast<std::int32_t>(n);
    }

    // Ensure capacity for `more` additional pairs in a row; its contents are kept.
    void make_room(std::int64_t number, std::int64_t more) {
        const Row old = (*this)[number];
        if (old.length + more <= old.room) return;
        const std::int64_t room = std::max(std::int64_t{2} * old.length, old.length + more);
        if (free_ < room) add_chunk(room);
        Row row = take(room);
        std::copy_n(old.keys, old.length, row.keys);
        std::copy_n(old.values, old.length, row.values);
        row.length = old.length;
        (*this)[number] = row;
    }

    // Append a pair to a row that has spare capacity and does not contain the key.
    void append(std::int64_t number, std::int32_t key, Value value) noexcept {
        Row& row = (*this)[number];
        row.keys[row.length] = key;
        row.values[row.length] = value;
        ++row.length;
    }

    // Add `value` to the value of a key in a row with spare capacity; a new key starts from 0. All keys are searched,
    // so the row should be short.
    void add_to(std::int64_t number, std::int32_t key, Value value) noexcept {
        Row& row = (*this)[number];
        for (std::int32_t place = 0; place < row.length; ++place) {
            if (row.keys[place] == key) {
                row.values[place] += value;
                return;
            }
        }
        append(number, key, value);
    }

    // Remove the row that was added last.
    void withdraw() noexcept {
        const Row& row = rows_.back();
        if (!chunks_.empty() && row.keys + row.room == chunks_.back().keys.get() + used_) {
            used_ -= row.room;
            free_ += row.room;
        }
        rows_.pop_back();
    }

private:
    static constexpr std::int64_t CHUNK_PAIRS = 1 << 14;

    struct Release {
        void operator()(void* memory) const noexcept { release(memory); }
    };
    struct Chunk {
        std::unique_ptr<std::int32_t[], Release> keys;
        std::unique_ptr<Value[], Release> values;
    };

    void add_chunk(std::int64_t pairs) {
        // Small pools get small chunks, so that a model with ten labels does not need a megabyte.
        const std::int64_t usual = std::min(CHUNK_PAIRS, std::int64_t{256} << std::min<std::size_t>(chunks_.size(), 10));
        const auto n = static_cast<std::size_t>(std::max(pairs, usual));
        Chunk chunk;
        chunk.keys.reset(static_cast<std::int32_t*>(allocate_aligned(n * sizeof(std::int32_t))));
        chunk.values.reset(static_cast<Value*>(allocate_aligned(n * sizeof(Value))));
        chunks_.push_back(std::move(chunk));
        used_ = 0;
        free_ = static_cast<std::int64_t>(n);
    }

    Row take(std::int64_t room) noexcept {
        Row row;
        if (room > 0) {
            row.keys = chunks_.back().keys.get() + used_;
            row.values = chunks_.back().values.get() + used_;
        }
        row.room = static_cast<std::int32_t>(room);
        used_ += room;
        free_ -= room;
        return row;
    }

    Array<Row> rows_;
    Array<Chunk> chunks_;
    std::int64_t used_ = 0;  // number of pairs used in the last chunk; `free_` is the number of pairs left in it
    std::int64_t free_ = 0;
};

}  // namespace mlca::MLCA_LEVEL
