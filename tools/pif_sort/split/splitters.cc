#include "split/splitters.h"

#include <algorithm>

#include <fmt/format.h>

#include "pif/tool/message.h"
#include "sort.pb.h"

namespace pif::sort {
namespace {

constexpr std::uint64_t kSamplesOfAll = 4096;    // of all workers together,
constexpr std::uint64_t kSamplesOfShare = 64;    // but at least so many for each share,
constexpr std::uint64_t kSamplesOfWorker = 128;  // and of each worker
constexpr std::size_t kKeyBytesMax = 512;        // the first bytes of a key divide records, too
constexpr std::size_t kNumberDigits = sizeof(std::uint64_t);

using Sample = message::Samples::Sample;

// The samples of worker `rank`, which has no more than `records` records.
Status unpack(std::string_view bytes, std::uint32_t rank, std::uint64_t records, std::vector<Sample>& out) {
  PIF_TRY_VALUE(auto from, tool::parse_message<message::Samples>(bytes, rank));
  for (Sample& sample : *from.mutable_samples()) {
    if (sample.weight() > records || sample.key().size() > kKeyBytesMax)
      return tool::sent_nonsense(
          rank, fmt::format("a sample for {} records with a key of {} bytes", sample.weight(), sample.key().size()));
    records -= sample.weight();
    out.push_back(std::move(sample));
  }
  return {};
}

// Samples of the runs, from the middles of row blocks of equal length.
Result<std::string> take_samples(std::span<const RunView> runs, std::uint64_t wanted, const KeyMaker& maker,
                                 const Order& order, bool keep_together) {
  std::uint64_t records = 0;
  for (const RunView& run : runs) records += run.elements.size();
  message::Samples samples;
  std::string key;
  for (const RunView& run : runs) {
    const std::uint64_t size = run.elements.size();
    const std::uint64_t count = std::clamp<std::uint64_t>(wanted * size / records, 1, size);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t begin = i * size / count, end = (i + 1) * size / count;
      const std::size_t at = (begin + end) / 2;
      PIF_TRY(maker.make_full_key(run.record(at), order.number(run, at), key));
      if (keep_together) key.resize(key.size() - kNumberDigits);
      Sample& sample = *samples.add_samples();
      sample.set_weight(end - begin);
      sample.set_key(key.substr(0, kKeyBytesMax));
    }
  }
  return samples.SerializeAsString();
}

}  // namespace

Result<Splitters> Splitters::choose(tool::Team& team, std::span<const RunView> own, const KeyMaker& maker, Order& order,
                                    std::uint32_t shares, bool keep_together, std::uint64_t all_records,
                                    std::uint32_t workers) {
  const std::uint64_t wanted = std::max(std::max(kSamplesOfAll, kSamplesOfShare * shares) / workers, kSamplesOfWorker);
  PIF_TRY_VALUE(std::string packed, take_samples(own, wanted, maker, order, keep_together));
  PIF_TRY_VALUE(const auto all, team.all_gather(std::move(packed)));
  std::vector<Sample> samples;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) PIF_TRY(unpack(all[rank], rank, all_records, samples));
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.key() < b.key(); });
  std::uint64_t records = 0;
  for (const Sample& sample : samples) records += sample.weight();
  std::vector<std::string> firsts;
  std::uint64_t before = 0;
  for (auto at = samples.begin(); at != samples.end() && firsts.size() + 1 < shares; ++at) {
    before += at->weight();
    while (firsts.size() + 1 < shares && before >= (firsts.size() + 1) * records / shares) firsts.push_back(at->key());
  }
  return Splitters(maker, std::move(firsts));
}

std::size_t Splitters::cut(const RunView& run, std::uint32_t share, const Order& order) const {
  if (share == 0) return 0;
  if (share > firsts_.size()) return run.elements.size();
  const std::string& first = firsts_[share - 1];
  std::size_t low = 0, high = run.elements.size();
  std::string key;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    (void)maker_->make_full_key(run.record(middle), order.number(run, middle), key);  // it was made in the local phase
    if (key < first)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace pif::sort
