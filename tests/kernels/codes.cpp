// Adversarial tests of the four-bit screening: bounds must hold, lists must be exact, and failed allocations must
// change nothing. test_codes.py compiles and runs this program once per processor level.
#include <functional>
#include <new>
#include <vector>

#include "attack.hpp"
#include "search/correntropy_codes.hpp"
#include "search/rank_codes.hpp"
#include "similarity/ranks.hpp"

using namespace mlca::MLCA_LEVEL;

// A family of values, and a factor r. Most factors give terms between 0 and 1; some give only zeros or ones.
struct Family {
    const char* name;
    std::function<double(Random&)> value;
    double r;
};

static const std::vector<Family>& families() {
    static const std::vector<Family> all = {
        {"normal", [](Random& random) { return random.normal(); }, 0.7},
        {"normal, rather narrow", [](Random& random) { return random.normal(); }, 6.0},
        {"normal, narrow", [](Random& random) { return random.normal(); }, 300.0},
        {"normal, wide", [](Random& random) { return random.normal(); }, 1e-3},
        {"equal", [](Random&) { return 3.25; }, 1.0},
        {"binary", [](Random& random) { return random.uniform() < 0.3 ? 1.0 : 0.0; }, 1.7},
        {"five values", [](Random& random) { return static_cast<double>(random.below(5)) - 2.0; }, 0.5},
        {"far from zero", [](Random& random) { return 1e9 + random.normal(); }, 0.7},
        {"negative", [](Random& random) { return -5.0 - random.uniform(); }, 2.0},
        {"huge", [](Random& random) { return 1e150 * random.normal(); }, 1e-150},
        {"huge, any r", [](Random& random) { return 1e150 * random.normal(); }, 1.0},
        {"tiny", [](Random& random) { return 1e-150 * random.normal(); }, 1e150},
        {"smallest", [](Random& random) { return 5e-324 * static_cast<double>(random.below(9)); }, 1e300},
        {"heavy tails", [](Random& random) { return random.normal() / (random.uniform() + 1e-9); }, 0.3},
        {"mostly zero", [](Random& random) { return random.uniform() < 0.9 ? 0.0 : random.normal(); }, 1.0},
        {"all scales", [](Random& random) { return std::exp2(200.0 * random.normal()); }, 1.0},
    };
    return all;
}

struct Data {
    int64_t n, d;
    std::vector<double> weights, rows;
    int64_t n_rows;

    Data(Random& random, const Family& family, int64_t n_nodes, int64_t n_features, int64_t n_queries)
        : n(n_nodes), d(n_features), n_rows(n_queries) {
        for (int64_t k = 0; k < n * d; ++k) weights.push_back(family.value(random));
        for (int64_t k = 0; k < n_rows * d; ++k) rows.push_back(family.value(random));
        // Copy some nodes to create ties, and one node to the first row, so that their sum is 0.
        for (int64_t k = 0; k + 7 < n; k += 7) std::copy_n(&weights[static_cast<std::size_t>(k * d)], d, &weights[static_cast<std::size_t>((k + 7 - k % 3) * d)]);
        std::copy_n(&weights[static_cast<std::size_t>((n / 2) * d)], d, rows.begin());
    }
    const double* operator()(int64_t node) const { return weights.data() + node * d; }
    const double* row(int64_t j) const { return rows.data() + j * d; }
};

// Return code cells whose boundaries do not fit the nodes.
static Cells spoilt(int64_t d, int how, Random& random) {
    std::vector<double> rows;
    for (int64_t k = 0; k < 16 * d; ++k) {
        const double spread = static_cast<double>(k / d) - 7.0;
        rows.push_back(how == 0 ? 0.0 : how == 1 ? 1e300 : how == 2 ? -1e300 : how == 3 ? spread * 1e299 : spread * random.uniform());
    }
    Cells cells(d);
    cells.build(16, [&](int64_t row) { return rows.data() + row * d; });
    return cells;
}

static uint32_t plain_sum(const std::uint8_t* block, const std::uint8_t* tables, int64_t d, int terms, int64_t node) {
    uint32_t total = 0;
    for (int64_t first = 0; first < d; first += scan_part_length(terms)) {
        uint32_t part = 0;
        for (int64_t i = first; i < std::min(first + scan_part_length(terms), d); ++i) {
            const int byte = block[i * 32 + node % 32];
            part += tables[i * 16 + (node < 32 ? byte & 15 : byte >> 4)];
        }
        total += part >> scan_shift(d, terms);
    }
    return total;
}

template <int TERMS>
static void scan_gives_the_plain_sum(Random& random) {
    for (const int64_t d : {1, 2, 3, 4, 5, 31, 103, 511, 513, 1023, 1025, 1040, 9000}) {
        doing = "d = " + std::to_string(d) + ", terms " + std::to_string(TERMS);
        const int64_t room = rounded_up(d, FOURS);
        std::vector<std::uint8_t> block(static_cast<std::size_t>(room * BLOCK_BYTES)), tables(static_cast<std::size_t>(4 * room * TABLE));
        for (auto& byte : block) byte = static_cast<std::uint8_t>(random.bits());
        for (int q = 0; q < 4; ++q) {
            for (int64_t k = 0; k < d * TABLE; ++k) {
                const auto entry = q == 3 ? largest_entry(TERMS) : static_cast<int>(random.below(largest_entry(TERMS) + 1));
                tables[static_cast<std::size_t>(q * room * TABLE + k)] = static_cast<std::uint8_t>(entry);
            }
        }
        const std::uint8_t* starts[4];
        for (int q = 0; q < 4; ++q) starts[q] = tables.data() + q * room * TABLE;
        for (int n_rows = 1; n_rows <= 4; ++n_rows) {
            std::vector<std::uint16_t> sums(4 * BLOCK, 7);
            std::uint16_t* places[4] = {&sums[0], &sums[BLOCK], &sums[2 * BLOCK], &sums[3 * BLOCK]};
            switch (n_rows) {
                case 1: scan<1, TERMS>(block.data(), starts, d, places); break;
                case 2: scan<2, TERMS>(block.data(), starts, d, places); break;
                case 3: scan<3, TERMS>(block.data(), starts, d, places); break;
                default: scan<4, TERMS>(block.data(), starts, d, places);
            }
            for (int q = 0; q < n_rows; ++q) {
                for (int64_t j = 0; j < BLOCK; ++j) CHECK(places[q][j] == plain_sum(block.data(), starts[q], d, TERMS, j));
            }
        }
    }
}

// If a block is left early, bounds up to `most` must be unchanged; all others must exceed `most` and still be lower
// bounds.
static void a_block_is_left_early_only_if_it_may(Random& random) {
    for (const int64_t d : {3, 16, 17, 65, 300, 1030}) {
        doing = "left early, d = " + std::to_string(d);
        const int64_t room = rounded_up(d, FOURS);
        std::vector<std::uint8_t> block(static_cast<std::size_t>(room * BLOCK_BYTES)), tables(static_cast<std::size_t>(room * TABLE));
        for (int round = 0; round < 60; ++round) {
            for (auto& byte : block) byte = static_cast<std::uint8_t>(random.bits());
            const bool near = round % 2;  // in every second round, one node has the sum 0
            for (int64_t k = 0; k < d * TABLE; ++k) tables[static_cast<std::size_t>(k)] = static_cast<std::uint8_t>(near && k % TABLE == 0 ? 0 : random.below(64));
            for (int64_t i = 0; near && i < d; ++i) block[static_cast<std::size_t>(i * BLOCK_BYTES + 5)] = 0;
            const std::uint8_t* starts[1] = {tables.data()};
            std::uint16_t sums[BLOCK];
            std::uint16_t* places[1] = {sums};
            const int64_t most = random.below(round % 3 == 0 ? 3 : 30 * d);
            scan<1, 4>(block.data(), starts, d, places, most);
            for (int64_t j = 0; j < BLOCK; ++j) {
                const auto sum = static_cast<int64_t>(plain_sum(block.data(), starts[0], d, 4, j));
                CHECK(sums[j] <= sum);
                CHECK(sums[j] == sum || sums[j] > most);
            }
        }
    }
}

// Return ranks with knots from the first n rows.
static Ranks ranked(const Data& data, int64_t n) {
    Ranks ranks = Ranks::with_knots(data.d, n);
    Ranks::Space space;
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < ranks.n_knots; ++i) positions.push_back(ranks.position(i, n));
    for (int64_t j = 0; j < data.d; ++j) {
        std::vector<double> column;
        for (int64_t k = 0; k < n; ++k) column.push_back(j == 3 ? static_cast<double>(k % 4) : data(k)[j]);
        ranks.add_column(column.data(), n, positions.data(), space);
    }
    ranks.lay_out(data.d);
    return ranks;
}

// The ranks of a whole row must equal those of its single values, including values on knots and beyond the outermost
// knots.
static void rows_have_the_ranks_of_their_values(Random& random) {
    for (const Family& family : families()) {
        for (const int64_t n : {5, 17, 60}) {
            const int64_t d = 21;
            doing = std::string(family.name) + ", ranks of rows, n = " + std::to_string(n);
            const Data data(random, family, n, d, 30);
            const Ranks ranks = ranked(data, n);
            std::vector<std::int32_t> found(static_cast<std::size_t>(d));
            const auto check = [&](const double* row) {
                ranks.rank_row(row, d, found.data());
                for (int64_t j = 0; j < d; ++j) CHECK(found[static_cast<std::size_t>(j)] == ranks(j, row[j]) + ranks.zeros[static_cast<std::size_t>(j)]);
            };
            for (int64_t k = 0; k < n; ++k) check(data(k));
            for (int64_t j = 0; j < data.n_rows; ++j) check(data.row(j));
        }
    }
}

// A code and its additional byte must restore the exact rank, even if a node has moved far beyond the knots and back.
static void ranks_are_given_back(Random& random) {
    for (const Family& family : families()) {
        for (const int64_t n : {0, 1, 5, 60}) {
            const int64_t d = 21;
            doing = std::string(family.name) + ", ranks given back, n = " + std::to_string(n);
            const Data data(random, family, 60, d, 1);
            Learned learned(n == 0 ? Ranks::binary(d) : ranked(data, n));
            learned.weights.assign(static_cast<std::size_t>(d), WHOLE_WEIGHT / d);
            learned.restore_sums();
            RankCodes16 codes(learned, data.n);
            codes.reserve(data.n);
            std::vector<std::int32_t> ranks(static_cast<std::size_t>(d)), found(ranks);
            for (const double factor : {1.0, 1.3, -1e4, 1.0}) {
                std::vector<double> moved(static_cast<std::size_t>(data.n * d));
                std::transform(data.weights.begin(), data.weights.end(), moved.begin(), [&](double value) { return value * factor; });
                const auto weights = [&](int64_t k) { return moved.data() + k * d; };
                for (int64_t k = 0; k < data.n; ++k) {
                    learned.ranks.rank_row(weights(k), d, ranks.data());
                    codes.enter(k, ranks.data());
                    codes.decode(learned, k, [&] { return weights(k); }, found.data());
                    CHECK(found == ranks);
                }
            }
            for (std::int32_t rank = -64; rank <= learned.ranks.one() + 64; rank += 11) {
                std::fill(ranks.begin(), ranks.end(), rank);
                codes.enter(0, ranks.data());
                codes.decode(learned, 0, []() -> const double* { CHECK(false); return nullptr; }, found.data());
                CHECK(found == ranks);
            }
        }
    }
}

static void sixteen_bits_are_as_close_as_promised() {
    for (int z = 0; z < 32768; ++z) {
        const double power = std::exp2(-(z * 0x1p-13) * (z * 0x1p-13));
        CHECK(fine_power(static_cast<std::int16_t>(z)) * 0x1p-15 >= power - POWER_ERROR);
        CHECK(fine_root_power(static_cast<std::int16_t>(z)) * 0x1p-15 >= 1.0 - std::sqrt(1.0 - power) - ROOT_POWER_ERROR);
    }
}

static void bounds_hold(Random& random) {
    for (const Family& family : families()) {
        for (const int64_t d : {1, 3, 20, 67}) {
            const Data data(random, family, 150, d, 6);
            CodedNodes coded(d);
            coded.reserve(data.n);
            coded = coded.renewed(data.n, data, true);
            for (int how = -1; how < 5; ++how) {
                doing = std::string(family.name) + ", d = " + std::to_string(d) + ", cells " + std::to_string(how);
                const Cells cells = how < 0 ? coded.cells() : spoilt(d, how, random);
                Codes4 codes(d);
                codes.reserve(data.n);
                std::vector<std::uint8_t> own(static_cast<std::size_t>(d));
                for (int64_t k = 0; k < data.n; ++k) {
                    cells.assign(data(k), own.data());
                    codes.enter(k, own.data());
                }
                LookupTables tables(d);
                Row16 fine(d);
                Screening screening;
                for (int64_t j = 0; j < data.n_rows; ++j) {
                    const double *x = data.row(j), r = family.r;
                    tables.fill_common(x, r, cells);
                    fine.fill_common(x, r, coded.widths());
                    const LookupTables* all[1] = {&tables};
                    screening.bound_all(codes, all, 1, data.n);
                    for (int64_t k = 0; k < data.n; ++k) {
                        const int64_t sum = common_sum(x, data(k), d, r);
                        CHECK(screening.bounds(0, data.n)[k] * tables.step() <= sum);
                        CHECK(fine.lower(coded.fine(k)) <= sum);
                    }
                }
            }
        }
    }
}

// A group of one feature.
struct Alone {
    double r;
    int64_t size;
};

// With equal features all rounding errors are equal, so none cancels another; the bounds must still hold.
static void aligned_errors_are_allowed_for(Random& random) {
    const Family repeated{"repeated", [value = 0.0, n = 0](Random& source) mutable {
        if (n++ % FINE_LANES == 0) value = source.uniform();
        return value;
    }, 1.0};
    const Data data(random, repeated, 150, FINE_LANES, 100);
    const CodedNodes coded = CodedNodes(data.d).renewed(data.n, data, false);
    Row16 fine(data.d), grouped(data.d);
    LookupTables tables(data.d), rooted(data.d);
    Screening screening, screening_of_roots;
    for (const double r : {1.0, 5.0, 12.0, 30.0, 60.0}) {
        doing = "repeated values, r = " + std::to_string(r);
        for (int64_t j = 0; j < data.n_rows; ++j) {
            const double* x = data.row(j);
            fine.fill_common(x, r, coded.widths());
            const auto alone = [&](int64_t) { return Alone{r, 1}; };
            grouped.fill_grouped(x, alone, coded.widths());
            tables.fill_common(x, r, coded.cells());
            rooted.fill_grouped(x, alone, coded.cells());
            const LookupTables *one[1] = {&tables}, *other[1] = {&rooted};
            screening.bound_all(coded.codes(), one, 1, data.n);
            screening_of_roots.bound_all(coded.codes(), other, 1, data.n);
            for (int64_t k = 0; k < data.n; ++k) {
                int64_t roots = 0;
                for (int64_t i = 0; i < data.d; ++i) roots += group_root(dissimilarity(x[i] - data(k)[i], r), 1);
                CHECK(fine.lower(coded.fine(k)) <= common_sum(x, data(k), data.d, r));
                CHECK(grouped.lower(coded.fine(k)) <= roots);
                CHECK(screening.bounds(0, data.n)[k] * tables.step() <= common_sum(x, data(k), data.d, r));
                CHECK(screening_of_roots.bounds(0, data.n)[k] * rooted.step() <= roots);
            }
        }
    }
}

static std::vector<std::pair<int64_t, int64_t>> brute_force(const Data& data, const double* x, double r, int64_t n, int64_t wanted) {
    std::vector<std::pair<int64_t, int64_t>> all;
    for (int64_t k = 0; k < n; ++k) all.emplace_back(common_sum(x, data(k), data.d, r), k);
    std::sort(all.begin(), all.end());
    all.resize(static_cast<std::size_t>(std::min(n, wanted)));
    return all;
}

static void check_lists(const Data& data, double r, const CodedNodes& coded, const Codes4& codes, const Cells& cells, int64_t n) {
    for (const int64_t wanted : {1, 10, 101}) {
        Screening screening;
        TopK nearest(wanted);
        for (int64_t first = 0; first < data.n_rows; first += SCAN_ROWS - 1) {
            const auto n_rows = static_cast<int>(std::min<int64_t>(SCAN_ROWS - 1, data.n_rows - first));
            std::vector<LookupTables> tables(static_cast<std::size_t>(n_rows), LookupTables(data.d));
            const LookupTables* all[SCAN_ROWS];
            for (int q = 0; q < n_rows; ++q) {
                tables[static_cast<std::size_t>(q)].fill_common(data.row(first + q), r, cells);
                all[q] = &tables[static_cast<std::size_t>(q)];
            }
            screening.bound_all(codes, all, n_rows, n);
            for (int q = 0; q < n_rows; ++q) {
                const double* x = data.row(first + q);
                Row16 fine(data.d);
                fine.fill_common(x, r, coded.widths());
                const auto expected = brute_force(data, x, r, n, wanted);
                const auto check = [&] {
                    CHECK(nearest.size() == static_cast<int64_t>(expected.size()));
                    for (std::size_t j = 0; j < expected.size(); ++j) {
                        CHECK(nearest.sums[j] == expected[j].first);
                        CHECK(nearest.nodes[j] == expected[j].second);
                    }
                };
                const int64_t step = Screening::bound_step(*all[q]);
                const auto exact = [&](int64_t node) { return common_sum(x, data(node), data.d, r); };
                const CodedSums<decltype(exact), Data> sums{data.d, fine, coded, exact, data};
                screening.list_nearest(q, n, step, wanted, sums, nearest);
                check();
                if (data.d > FewFeatures<Data>::MOST) continue;
                const FewFeatures<Data> few{x, data.d, r, data};
                screening.list_nearest_directly(q, n, step, wanted, few, nearest);
                check();
            }
        }
    }
}

static void lists_are_those_of_brute_force(Random& random) {
    for (const Family& family : families()) {
        for (const int64_t n : {1, 40, 64, 65, 700}) {
            const int64_t d = 1 + random.below(n % 2 == 0 ? 8 : 40);
            const Data data(random, family, std::max<int64_t>(n, 40), d, 5);
            CodedNodes coded(d);
            coded.reserve(data.n);
            coded = coded.renewed(data.n, data, true);
            doing = std::string(family.name) + ", n = " + std::to_string(n) + ", d = " + std::to_string(d);
            check_lists(data, family.r, coded, coded.codes(), coded.cells(), n);
            const Cells cells = spoilt(d, static_cast<int>(random.below(5)), random);
            Codes4 codes(d);
            codes.reserve(data.n);
            std::vector<std::uint8_t> own(static_cast<std::size_t>(d));
            for (int64_t k = 0; k < data.n; ++k) {
                cells.assign(data(k), own.data());
                codes.enter(k, own.data());
            }
            doing += ", spoilt cells";
            check_lists(data, family.r, coded, codes, cells, n);
        }
    }
}

// Random groups of a row's features; each group has a factor r and a size.
struct Grouped {
    struct Group {
        double r;
        int64_t size;
    };
    std::vector<int64_t> members;
    std::vector<Group> groups;

    Grouped(Random& random, int64_t d, double r) {
        const int64_t n_groups = 1 + random.below(d);
        for (int64_t i = 0; i < d; ++i) members.push_back(i < n_groups ? i : random.below(n_groups));
        for (int64_t j = 0; j < n_groups; ++j) groups.push_back({r * std::exp2(random.normal()), std::count(members.begin(), members.end(), j)});
    }
    Group operator()(int64_t feature) const { return groups[static_cast<std::size_t>(members[static_cast<std::size_t>(feature)])]; }

    int64_t sum(const double* x, const double* y) const {
        std::vector<int64_t> totals(groups.size(), 0);
        for (std::size_t i = 0; i < members.size(); ++i) {
            const auto group = static_cast<std::size_t>(members[i]);
            totals[group] += dissimilarity(x[i] - y[i], groups[group].r);
        }
        int64_t total = 0;
        for (std::size_t j = 0; j < groups.size(); ++j) total += group_root(totals[j], groups[j].size);
        return total;
    }
};

static void groups_are_bounded_and_listed(Random& random) {
    for (const Family& family : families()) {
        for (const int64_t d : {1, 6, 30}) {
            doing = std::string(family.name) + ", groups, d = " + std::to_string(d);
            const Data data(random, family, 300, d, 4);
            CodedNodes coded(d);
            coded.reserve(data.n);
            coded = coded.renewed(data.n, data, true);
            LookupTables tables(d);
            Row16 fine(d);
            Screening screening;
            TopK nearest(10);
            for (int64_t j = 0; j < data.n_rows; ++j) {
                const double* x = data.row(j);
                const Grouped group(random, d, family.r);
                fine.fill_grouped(x, group, coded.widths());
                tables.fill_grouped(x, group, coded.cells());
                const LookupTables* one[1] = {&tables};
                screening.bound_all(coded.codes(), one, 1, data.n);
                const auto exact = [&](int64_t node) { return group.sum(x, data(node)); };
                std::vector<std::pair<int64_t, int64_t>> expected;
                for (int64_t k = 0; k < data.n; ++k) {
                    expected.emplace_back(exact(k), k);
                    CHECK(screening.bounds(0, data.n)[k] * Screening::bound_step(tables) <= exact(k));
                    CHECK(fine.lower(coded.fine(k)) <= exact(k));
                }
                std::sort(expected.begin(), expected.end());
                const CodedSums<decltype(exact), Data> sums{d, fine, coded, exact, data};
                screening.list_nearest(0, data.n, Screening::bound_step(tables), 10, sums, nearest);
                for (std::size_t k = 0; k < 10; ++k) {
                    CHECK(nearest.sums[k] == expected[k].first);
                    CHECK(nearest.nodes[k] == expected[k].second);
                }
            }
        }
    }
}

// Tighter bounds that are exact or nearly useless, with a wrong estimate of how loose they are.
struct Misled {
    const std::vector<int64_t>& sums;
    int64_t worth, claim;

    int64_t exact(int64_t node) const { return sums[static_cast<std::size_t>(node)]; }
    int64_t lower(int64_t node) const { return exact(node) / worth; }
    int64_t looseness() const { return claim; }
    void fetch(int64_t) const {}
    void fetch_fine(int64_t) const {}
};

static void a_wrong_guess_changes_nothing(Random& random) {
    for (int round = 0; round < 200; ++round) {
        doing = "round " + std::to_string(round);
        const int64_t n = 1 + random.below(400), wanted = 1 + random.below(20);
        std::vector<int64_t> sums;
        Screening screening;
        std::uint16_t* bounds = screening.bounds(0, n);
        for (int64_t k = 0; k < n; ++k) {
            sums.push_back(random.below(round % 2 ? 50 : 60000));
            bounds[k] = static_cast<std::uint16_t>(random.below(sums.back() + 1));
        }
        std::vector<std::pair<int64_t, int64_t>> expected;
        for (int64_t k = 0; k < n; ++k) expected.emplace_back(sums[static_cast<std::size_t>(k)], k);
        std::sort(expected.begin(), expected.end());
        for (const int64_t worth : {1, 3, 100000}) {
            TopK nearest(wanted);
            screening.list_nearest(0, n, 1, wanted, Misled{sums, worth, worth % 2}, nearest);
            CHECK(nearest.size() == std::min(n, wanted));
            for (int64_t j = 0; j < nearest.size(); ++j) {
                CHECK(nearest.nodes[static_cast<std::size_t>(j)] == expected[static_cast<std::size_t>(j)].second);
            }
        }
    }
}

// Reserve memory for n nodes, n_nodes of which exist, and recompute the code cells when due, as the learner does.
void prepare(CodedNodes& coded, int64_t n, int64_t n_nodes, const Data& data) {
    if (coded.due(n_nodes, 32)) coded = coded.renewed(n_nodes, data, true);
    coded.reserve(n);
}

static void nodes_may_move_and_be_withdrawn(Random& random) {
    const Family& family = families().front();
    const int64_t d = 13;
    Data data(random, family, 300, d, 5);
    CodedNodes coded(d);
    for (int64_t n = 0; n < data.n; ++n) {
        prepare(coded, n + 1, n, data);
        coded.enter(n, data(n));
        if (n % 5 == 0) {  // a node moves
            const int64_t mover = random.below(n + 1);
            for (int64_t i = 0; i < d; ++i) data.weights[static_cast<std::size_t>(mover * d + i)] += 0.1 * random.normal();
            coded.enter(mover, data(mover));
        }
        if (n % 11 == 0) {  // the newest node is withdrawn and replaced
            for (int64_t i = 0; i < d; ++i) data.weights[static_cast<std::size_t>(n * d + i)] = family.value(random);
            coded.enter(n, data(n));
        }
    }
    doing = "moved";
    check_lists(data, family.r, coded, coded.codes(), coded.cells(), data.n);
}

static void a_failed_allocation_changes_nothing(Random& random) {
    const Family& family = families().front();
    const int64_t d = 9;
    const Data data(random, family, 200, d, 3);
    CodedNodes coded(d);
    prepare(coded, 100, 32, data);
    for (int64_t k = 32; k < 100; ++k) coded.enter(k, data(k));
    for (int64_t fail = 0;; ++fail) {
        doing = "allocation " + std::to_string(fail) + " fails";
        allocations_left = fail;
        bool failed = false;
        try {
            prepare(coded, 128 + 1000 * fail, 128, data);  // recomputes the code cells
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        allocations_left = -1;
        if (!failed) break;
        check_lists(data, family.r, coded, coded.codes(), coded.cells(), 100);
        CHECK(fail < 1000);
    }
    for (int64_t k = 128; k < 200; ++k) {
        prepare(coded, k + 1, k, data);
        coded.enter(k, data(k));
    }
    check_lists(data, family.r, coded, coded.codes(), coded.cells(), 200);
}

// Buckets must list every node within reach exactly once, even after nodes were added, moved and replaced.
static void buckets_miss_no_node(Random& random) {
    for (const int64_t d : {1, 2, 3, 5, 6, 8, 20}) {
        doing = "buckets, d = " + std::to_string(d);
        const int64_t first = 1500, n = 2500;
        std::vector<double> weights(static_cast<std::size_t>(n * d));
        // A coarse grid puts values on boundaries and gives some buckets many nodes.
        const auto value = [&] { return d % 2 ? 0.25 * static_cast<double>(random.below(9)) : random.normal(); };
        for (double& weight : weights) weight = value();
        const auto row = [&](int64_t node) { return weights.data() + node * d; };
        Cells cells(d);
        cells.build(first, row);
        TakerBuckets buckets(first, cells, row);
        for (int64_t node = first; node < n; ++node) {
            buckets.reserve(node + 1);
            buckets.enter(node, cells, row(node));
        }
        for (int round = 0; round < 3000; ++round) {
            const int64_t node = random.below(n);
            row(node)[random.below(d)] = value();
            buckets.reserve_move();
            buckets.enter(node, cells, row(node));
        }
        Array<std::int32_t> found;
        int64_t n_collected = 0;
        for (int round = 0; round < 400; ++round) {
            const int64_t limit = round % 3 ? n : random.below(n) + 1;
            const double* from = row(random.below(limit));
            std::vector<double> x(from, from + d);
            const double reach = round % 2 ? 0.25 : 0.05 * random.uniform();
            for (double& entry : x) entry += round % 4 == 3 ? reach * (2.0 * random.uniform() - 1.0) : 0.0;
            if (!buckets.collect(x.data(), reach, cells, limit, found)) continue;
            ++n_collected;
            std::sort(found.begin(), found.end());
            CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
            CHECK(found.empty() || found.back() < limit);
            for (int64_t node = 0; node < limit; ++node) {
                bool is_within = true;
                for (int64_t i = 0; i < d; ++i) is_within = is_within && std::fabs(x[static_cast<std::size_t>(i)] - row(node)[i]) <= reach;
                CHECK(!is_within || std::binary_search(found.begin(), found.end(), static_cast<std::int32_t>(node)));
            }
        }
        CHECK(d < 5 || n_collected > 20);
    }
}

int main(int argc, char** argv) {
    Random random{argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1};
    scan_gives_the_plain_sum<4>(random);
    scan_gives_the_plain_sum<2>(random);
    a_block_is_left_early_only_if_it_may(random);
    rows_have_the_ranks_of_their_values(random);
    ranks_are_given_back(random);
    sixteen_bits_are_as_close_as_promised();
    bounds_hold(random);
    aligned_errors_are_allowed_for(random);
    lists_are_those_of_brute_force(random);
    groups_are_bounded_and_listed(random);
    a_wrong_guess_changes_nothing(random);
    nodes_may_move_and_be_withdrawn(random);
    a_failed_allocation_changes_nothing(random);
    buckets_miss_no_node(random);
    std::puts("all hold");
}
