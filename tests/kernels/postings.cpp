// Adversarial tests of the bounds on the sums of sparse nodes. test_codes.py compiles and runs this program.
#include <functional>
#include <new>
#include <vector>

#include "attack.hpp"
#include "search/postings.hpp"

using namespace mlca::MLCA_LEVEL;

struct Row {
    const std::int32_t* keys;
    const double* values;
    int64_t n;
};

struct Family {
    const char* name;
    std::function<double(Random&)> value;
    double r;
    bool narrow = false;  // whether all values are within the range of the codes
};

static const std::vector<Family>& families() {
    static const std::vector<Family> all = {
        {"positive", [](Random& random) { return random.uniform() + 1e-3; }, 12.0, true},
        {"both signs", [](Random& random) { return random.normal(); }, 1.5},
        {"ones", [](Random&) { return 1.0; }, 2.0, true},
        {"narrow", [](Random& random) { return random.normal(); }, 1e4},
        {"wide", [](Random& random) { return random.normal(); }, 1e-3},
        {"huge", [](Random& random) { return 1e150 * random.normal(); }, 1e-150},
        {"tiny", [](Random& random) { return 1e-150 * random.normal(); }, 1e150},
        {"heavy tails", [](Random& random) { return random.normal() / (random.uniform() + 1e-9); }, 0.3},
    };
    return all;
}

// Sparse rows with frequent and rare features; some rows are empty, some have all features.
struct Data {
    int64_t d;
    std::vector<std::vector<std::int32_t>> keys;
    std::vector<std::vector<double>> values;

    Data(Random& random, const Family& family, int64_t n, int64_t n_features) : d(n_features) {
        for (int64_t k = 0; k < n; ++k) {
            keys.emplace_back();
            values.emplace_back();
            refill(random, family, k);
        }
    }
    void refill(Random& random, const Family& family, int64_t k) {
        auto &own_keys = keys[static_cast<std::size_t>(k)];
        auto &own_values = values[static_cast<std::size_t>(k)];
        own_keys.clear();
        own_values.clear();
        for (int64_t i = 0; i < d; ++i) {
            const double share = k % 50 == 7 ? 0.0 : k % 50 == 8 ? 1.0 : 3.0 / static_cast<double>(i + 3);
            if (random.uniform() >= share) continue;
            own_keys.push_back(static_cast<std::int32_t>(i));
            own_values.push_back(family.value(random));
        }
    }
    Row operator()(int64_t k) const {
        const auto place = static_cast<std::size_t>(k);
        return {keys[place].data(), values[place].data(), static_cast<int64_t>(keys[place].size())};
    }
};

static int64_t plain_sum(const Row& x, const Row& y, int64_t d, double r) {
    std::vector<double> differences(static_cast<std::size_t>(d), 0.0);
    for (int64_t p = 0; p < x.n; ++p) differences[static_cast<std::size_t>(x.keys[p])] = x.values[p];
    for (int64_t p = 0; p < y.n; ++p) differences[static_cast<std::size_t>(y.keys[p])] -= y.values[p];
    int64_t total = 0;
    for (const double difference : differences) total += dissimilarity(difference, r);
    return total;
}

static void check(const Postings& postings, const Data& data, const Row& x, double r, int64_t n, bool narrow) {
    std::vector<double> spread(static_cast<std::size_t>(data.d), 0.0);
    std::vector<int64_t> alone(static_cast<std::size_t>(data.d), 0);
    std::vector<std::uint32_t> words(static_cast<std::size_t>(data.d), 0);
    int64_t base = 0;
    for (int64_t p = 0; p < x.n; ++p) {
        const auto i = static_cast<std::size_t>(x.keys[p]);
        spread[i] = x.values[p];
        base += alone[i] = dissimilarity(x.values[p], r);
        words[i] = postings.codes().word(x.values[p], static_cast<double>(alone[i]) * UNIT);
    }
    const auto exact = [&](int64_t node) { return base + gathered_correction(data(node), spread.data(), alone.data(), r); };
    Postings::Space space;
    std::vector<std::uint16_t> bounds(static_cast<std::size_t>(postings.written() + 1));
    const int64_t step = postings.bound_all(x, r, bounds.data(), space);
    std::vector<std::pair<int64_t, int64_t>> expected;
    for (int64_t k = 0; k < n; ++k) {
        const int64_t sum = plain_sum(x, data(k), data.d, r);
        CHECK(exact(k) == sum);
        if (k < postings.written()) CHECK(bounds[static_cast<std::size_t>(k)] * step <= sum);
        if (postings.knows(k)) {
            const Row y = data(k);
            const int64_t change = SparseCodes::lower(y.keys, postings.codes()[k], y.n, words.data(), postings.codes().shrinking(r));
            CHECK(base + change <= sum);
            // The error of a term is below 2^-12 plus the effect of a code that is wrong by 1.
            const double error = static_cast<double>(y.n) * (0x1p-12 + static_cast<double>(postings.codes().shrinking(r)));
            if (narrow) CHECK(static_cast<double>(sum - base - change) * UNIT <= error);
        }
        expected.emplace_back(sum, k);
    }
    std::sort(expected.begin(), expected.end());
    Screening screening;
    TopK nearest(10);
    list_nearest_sparse(postings, x, r, 0, n, 10, data, exact, screening, space, nearest);
    CHECK(nearest.size() == std::min<int64_t>(n, 10));
    for (std::size_t j = 0; j < static_cast<std::size_t>(nearest.size()); ++j) {
        CHECK(nearest.sums[j] == expected[j].first);
        CHECK(nearest.nodes[j] == expected[j].second);
    }
}

static void bounds_hold(Random& random) {
    for (const Family& family : families()) {
        Data data(random, family, 800, 60);
        const Data rows(random, family, 10, 90);  // with features that no node has
        Postings postings;
        for (const int64_t n : {100, 256, 300, 530, 800}) {
            postings.prepare(n, family.r * (1.0 + 1e-4 * static_cast<double>(n)), data);
            for (const double change : {1.0, 0.5, 0.99, 1.01, 2.0}) {
                doing = std::string(family.name) + ", n = " + std::to_string(n) + ", r times " + std::to_string(change);
                Data all = data;
                all.d = rows.d;
                check(postings, all, rows(random.below(10)), family.r * change, n, family.narrow);
            }
            for (int k = 0; k < 5; ++k) {  // move some nodes
                const int64_t mover = random.below(n);
                data.refill(random, family, mover);
                postings.forget(mover);
            }
        }
    }
}

static void long_rows_cannot_overflow(Random& random) {
    const Family& family = families()[1];
    for (const int64_t d : {600, 5000, 40000}) {
        doing = "d = " + std::to_string(d);
        Data data(random, family, 260, 40);
        data.d = d;
        for (const int64_t k : {0, 1, 258}) {
            for (int64_t i = 40; i < d; ++i) {
                data.keys[static_cast<std::size_t>(k)].push_back(static_cast<std::int32_t>(i));
                data.values[static_cast<std::size_t>(k)].push_back(family.value(random));
            }
        }
        Postings postings;
        postings.prepare(260, family.r, data);
        check(postings, data, data(258), family.r, 260, family.narrow);
    }
}

static void a_failed_allocation_changes_nothing(Random& random) {
    const Family& family = families()[0];
    const Data data(random, family, 600, 50);
    Postings postings;
    postings.prepare(300, family.r, data);
    for (int64_t fail = 0;; ++fail) {
        doing = "allocation " + std::to_string(fail) + " fails";
        allocations_left = fail;
        bool failed = false;
        try {
            postings.prepare(550, family.r, data);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        allocations_left = -1;
        check(postings, data, data(580), family.r, 550, family.narrow);
        if (!failed) break;
        CHECK(fail < 1000);
    }
    CHECK(postings.written() == 512);
}

int main(int argc, char** argv) {
    Random random{argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1};
    bounds_hold(random);
    long_rows_cannot_overflow(random);
    a_failed_allocation_changes_nothing(random);
    std::puts("all hold");
}
