#include "cost.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "pif/matrix/transpose.h"
#include "pif/matrix/weave.h"

namespace pif::transpose {
namespace {

constexpr std::size_t kSampleBytes = 1u << 20;
constexpr std::uint32_t kSampleParts = 4;

constexpr int kRounds = 3;  // of which the fastest counts: the first one finds memory that was never touched

// Seconds that f() takes by the worker's clock.
template <typename F>
Result<double> time_of(tool::Worker& worker, const F& f) {
  double fastest = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Time begin = worker.clock().now();
    PIF_TRY(f());
    const double seconds = std::chrono::duration<double>(worker.clock().now() - begin).count();
    fastest = round == 0 ? seconds : std::min(fastest, seconds);
  }
  return fastest;
}

// Rows that were read, and what becomes of them.
class Sample {
 public:
  Sample(tool::Worker& worker, tool::Input& input, matrix::Element element)
      : worker_(worker), input_(input), element_(element), length_(input.format().record_length) {}

  // For each byte.
  Result<Constants> measure() {
    Constants out;
    PIF_TRY_VALUE(out.read, time_of(worker_, [&] { return input_.read(0, input_.rows(), kSampleBytes, rows_); }));
    columns_ = length_ * 8 / element_.bits;
    pitch_ = element_.bytes_of(rows_.count) + sizeof(std::uint64_t);
    pieces_.resize(columns_ * pitch_);
    PIF_TRY_VALUE(out.transpose, time_of(worker_, [&] { return transpose(); }));
    PIF_TRY_VALUE(out.weave, time_of(worker_, [&] { return weave(); }));
    PIF_TRY_VALUE(out.write, time_of(worker_, [&] { return write(); }));
    const auto bytes = static_cast<double>(rows_.data.size());
    for (double* const each : {&out.read, &out.transpose, &out.weave, &out.write}) *each /= bytes;
    return out;
  }

 private:
  Status transpose() {
    matrix::transpose({rows_.data.data(), length_}, rows_.count, columns_, {pieces_.data(), pitch_}, element_);
    return {};
  }
  // As if the rows were parts of longer ones.
  Status weave() {
    const std::uint64_t rows = columns_ / kSampleParts;
    const matrix::Weave weave(element_, rows_.count * kSampleParts, kSampleParts, kSampleParts,
                              [](std::uint64_t i) { return static_cast<std::uint32_t>(i & (kSampleParts - 1)); });
    woven_.resize(rows * weave.row_room());
    std::vector<const std::byte*> parts;
    for (std::uint32_t part = 0; part < kSampleParts; ++part) parts.push_back(pieces_.data() + part * rows * pitch_);
    weave.weave(parts, pitch_, rows, {woven_.data(), weave.row_room()});
    return {};
  }
  Status write() {
    PIF_TRY_VALUE(tool::Scratch scratch, worker_.scratch());
    return scratch.append(rows_.data);
  }

  tool::Worker& worker_;
  tool::Input& input_;
  matrix::Element element_;
  std::size_t length_;
  tool::RowBatch rows_;
  std::uint64_t columns_ = 0;
  std::size_t pitch_ = 0;
  std::vector<std::byte> pieces_, woven_;
};

}  // namespace

Result<Constants> measure(tool::Worker& worker, tool::Input& input, const Shape& shape) {
  Constants out;
  if (input.is_here() && input.rows() > 0) {
    PIF_TRY_VALUE(out, Sample(worker, input, shape.element).measure());
  }
  out.crowd = std::max(1.0, static_cast<double>(worker.width()) / std::max(1U, std::thread::hardware_concurrency()));
  out.threads = worker.threads();
  return out;
}

Constants mean_of(const std::vector<Constants>& all) {
  Constants sum;
  double count = 0;
  for (const Constants& one : all) {
    sum.crowd = one.crowd;
    sum.threads = one.threads;
    if (one.read == 0) continue;  // it has no rows
    ++count;
    sum.read += one.read;
    sum.transpose += one.transpose;
    sum.weave += one.weave;
    sum.write += one.write;
  }
  if (count == 0) return sum;
  return {sum.read / count, sum.transpose / count, sum.weave / count, sum.write / count, sum.crowd, sum.threads};
}

// With several stripes the first one reads whole rows, and those after it what is theirs.
Phases predict(const Constants& c, const DirectShape& shape) {
  const auto bytes = static_cast<double>(shape.bytes);
  const double slow = c.crowd / c.threads, in = bytes / shape.sources * slow, out = bytes / shape.destinations * slow;
  const double reads = shape.stripes > 1 ? 2 : 1;
  return {{kTransposePhase, in * (reads * c.read + c.transpose)}, {kWritePhase, out * (c.weave + c.write)}};
}

// A pass reads and writes everything twice: into two parts, and together again. (k1 to k8; k12, a barrier, takes no
// time beside it.)
Phases predict(const Constants& c, const RecursiveShape& shape) {
  const double own = static_cast<double>(shape.bytes) / shape.width * c.crowd;
  const double out = static_cast<double>(shape.output_bytes) / shape.width * c.crowd;
  return {{kPassPhase, own * (c.read + shape.passes * 2 * c.write)},
          {kBandPhase, own * (c.transpose + c.write) + out * c.write}};
}

double total_of(const Phases& phases) {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [](double sum, const auto& phase) { return sum + phase.second; });
}

}  // namespace pif::transpose
