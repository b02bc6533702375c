#include "split/splitters.h"

#include <algorithm>
#include <cstring>

namespace pif::sort {
namespace {

constexpr std::uint64_t kSamplesOfAll = 4096;  // of all workers together,
constexpr std::uint64_t kSamplesMin = 128;     // but at least so many of each
constexpr std::size_t kKeyBytesMax = 512;      // the first bytes of a key divide records, too
constexpr std::size_t kNumberDigits = sizeof(std::uint64_t);

struct Sample {
  std::uint64_t weight = 0;  // records that it stands for
  std::string key;
};

void pack(const Sample& sample, std::string& out) {
  const auto size = static_cast<std::uint32_t>(sample.key.size());
  out.append(reinterpret_cast<const char*>(&sample.weight), sizeof sample.weight);
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += sample.key;
}

Status unpack(std::string_view text, std::vector<Sample>& out) {
  while (!text.empty()) {
    Sample sample;
    std::uint32_t size = 0;
    constexpr std::size_t kHead = sizeof sample.weight + sizeof size;
    if (text.size() < kHead) return fail(Code::kInvalid, "another worker's samples end too soon");
    std::memcpy(&sample.weight, text.data(), sizeof sample.weight);
    std::memcpy(&size, text.data() + sizeof sample.weight, sizeof size);
    if (text.size() - kHead < size) return fail(Code::kInvalid, "another worker's samples end too soon");
    sample.key = text.substr(kHead, size);
    text.remove_prefix(kHead + size);
    out.push_back(std::move(sample));
  }
  return {};
}

// Samples of the runs, from the middles of row blocks of equal length.
Result<std::string> take_samples(std::span<const RunView> runs, std::uint64_t wanted, const KeyMaker& maker,
                                 const Order& order, bool keep_together) {
  std::uint64_t records = 0;
  for (const RunView& run : runs) records += run.elements.size();
  std::string packed;
  for (const RunView& run : runs) {
    const std::uint64_t size = run.elements.size();
    const std::uint64_t count = std::clamp<std::uint64_t>(wanted * size / records, 1, size);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t begin = i * size / count, end = (i + 1) * size / count;
      const std::size_t at = (begin + end) / 2;
      Sample sample;
      sample.weight = end - begin;
      PIF_TRY(maker.make_full_key(run.record(at), order.number(run, at), sample.key));
      if (keep_together) sample.key.resize(sample.key.size() - kNumberDigits);
      sample.key.resize(std::min(sample.key.size(), kKeyBytesMax));
      pack(sample, packed);
    }
  }
  return packed;
}

}  // namespace

Result<Splitters> Splitters::choose(tool::Team& team, std::span<const RunView> own, const KeyMaker& maker, Order& order,
                                    std::uint32_t shares, bool keep_together) {
  const std::uint64_t wanted = std::max(kSamplesOfAll / shares, kSamplesMin);
  PIF_TRY_VALUE(std::string packed, take_samples(own, wanted, maker, order, keep_together));
  PIF_TRY_VALUE(const auto all, team.all_gather(std::move(packed)));
  std::vector<Sample> samples;
  for (const std::string& each : all) PIF_TRY(unpack(each, samples));
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.key < b.key; });
  std::uint64_t records = 0;
  for (const Sample& sample : samples) records += sample.weight;
  std::vector<std::string> firsts;
  std::uint64_t before = 0;
  for (auto at = samples.begin(); at != samples.end() && firsts.size() + 1 < shares; ++at) {
    before += at->weight;
    while (firsts.size() + 1 < shares && before >= (firsts.size() + 1) * records / shares) firsts.push_back(at->key);
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
