// Measures a search for the nearest nodes by codes, relative to exact sums with all nodes. See measure_screening.py.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "search/screening.hpp"

using namespace mlca::MLCA_LEVEL;

static double seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The smallest time of several runs, because other programs slow some runs down.
template <class Work>
static double best_time(int tries, const Work& work) {
    double best = 1e9;
    for (int k = 0; k < tries; ++k) {
        const double start = seconds();
        work();
        best = std::min(best, seconds() - start);
    }
    return best;
}

int main(int argc, char** argv) {
    std::FILE* file = argc > 1 ? std::fopen(argv[1], "rb") : nullptr;
    std::int64_t n = 0, d = 0;
    double r = 0.0;
    if (file == nullptr || std::fread(&n, 8, 1, file) != 1 || std::fread(&d, 8, 1, file) != 1 || std::fread(&r, 8, 1, file) != 1) return 1;
    std::vector<double> values(static_cast<std::size_t>(n * d));
    if (std::fread(values.data(), 8, values.size(), file) != values.size()) return 1;
    const auto weights = [&](std::int64_t node) { return values.data() + node * d; };
    const CodedNodes coded = CodedNodes(d).renewed(n, weights);
    const std::int64_t n_rows = std::min<std::int64_t>(n, 256) / SCAN_ROWS * SCAN_ROWS, n_wanted = argc > 2 ? std::atoi(argv[2]) : 10;
    Screening screening;
    Shortlist nearest(n_wanted);
    std::vector<Tables> tables(SCAN_ROWS, Tables(d));
    std::vector<FineRow> fine(SCAN_ROWS, FineRow(d));
    std::int64_t checksum = 0;
    const auto exact = [&] {
        for (std::int64_t k = 0; k < std::min<std::int64_t>(n, 1000); ++k) checksum += common_sum(weights(0), weights(k), d, r);
    };
    const auto search = [&](int together) {
        for (std::int64_t first = 0; first < n_rows; first += together) {
            const Tables* some[SCAN_ROWS];
            const auto row = [&](int q) { return weights((first + q) * n / n_rows); };
            for (int q = 0; q < together; ++q) {
                fine[static_cast<std::size_t>(q)].fill_common(row(q), r, coded.widths());
                tables[static_cast<std::size_t>(q)].fill_common(row(q), r, fine[static_cast<std::size_t>(q)], coded.cells(), coded.fine_cells(), coded.widths());
                some[q] = &tables[static_cast<std::size_t>(q)];
            }
            screening.bound_all(coded.codes(), some, together, n);
            for (int q = 0; q < together; ++q) {
                const std::int64_t step = Screening::bound_step(*some[q]);
                if (d <= FewAttributes<decltype(weights)>::MOST) {
                    const FewAttributes<decltype(weights)> sums{row(q), d, r, weights};
                    screening.list_nearest_directly(q, n, step, n_wanted, sums, nearest);
                } else {
                    const FineRow& own = fine[static_cast<std::size_t>(q)];
                    const CommonSums<decltype(weights)> sums{row(q), d, r, own, coded, weights};
                    screening.list_nearest(q, n, step, n_wanted, sums, nearest);
                }
                checksum += nearest.sums[0];
            }
        }
    };
    const double a_sum = best_time(40, exact) / static_cast<double>(std::min<std::int64_t>(n, 1000));
    std::printf("%lld nodes, %lld attributes; exact sums: %.2f billion terms a second\n", static_cast<long long>(n), static_cast<long long>(d),
                1e-9 * static_cast<double>(d) / a_sum);
    for (const int together : {1, SCAN_ROWS}) {
        const double a_row = best_time(15, [&] { search(together); }) / static_cast<double>(n_rows);
        std::printf("  rows together: %d; %.2f microseconds a row, %.1f times exact sums\n", together, 1e6 * a_row,
                    a_sum * static_cast<double>(n) / a_row);
    }
    return checksum == 42;
}
