#include "output.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace pif::sort {
namespace {

constexpr std::size_t kAppendBytes = 1u << 20;  // gathered before they are written

Bytes record_of(std::span<const RunView> runs, Pick pick) { return runs[pick.run].record(pick.index); }

}  // namespace

void OutputRecord::copy(Bytes record, std::byte* to) const {
  if (!record.empty()) std::memcpy(to, record.data(), record.size());
  if (lacks_end(record)) to[record.size()] = static_cast<std::byte>(format_.delimiter);
}

// ---- all at once --------------------------------------------------------------------------------------------------

std::uint64_t ParallelOutput::alignment(const Format& format, const parity::Layout& layout) {
  return layout.width() * (component::chunk_bytes_for(format) / format.record_length);
}

ParallelOutput::ParallelOutput(const tool::Output& output, std::span<component::Files> files, std::uint64_t records)
    : output_(output), writers_(files.size()) {
  for (std::size_t lfs = 0; lfs < files.size(); ++lfs) {
    if (output.layout().rows(static_cast<LfsIndex>(lfs), records) > 0)
      writers_[lfs].emplace(output.shape(), component::Tail{}, files[lfs]);
  }
}

Status ParallelOutput::write(std::uint64_t first, std::span<const Pick> picks, std::span<const RunView> runs) {
  const parity::Layout& layout = output_.layout();
  const std::size_t length = output_.format().record_length;
  const Range ranks{first, first + picks.size()};
  for (LfsIndex lfs = 0; lfs < writers_.size(); ++lfs) {
    const Range rows = layout.rows(lfs, ranks);
    if (rows.empty()) continue;
    const std::uint64_t at = *layout.record_at({lfs, rows.begin}) - first;  // and then every width-th: there is no parity
    bytes_.resize(rows.size() * length);
    gather(picks.subspan(at), layout.width(), runs);
    PIF_TRY(writers_[lfs]->write_rows(rows.begin, rows.size(), {bytes_.data(), length}));
  }
  return {};
}

// Every `step`-th pick, packed, until bytes_ is full.
void ParallelOutput::gather(std::span<const Pick> picks, std::size_t step, std::span<const RunView> runs) {
  const std::size_t length = output_.format().record_length;
  for (std::size_t at = 0, i = 0; at < bytes_.size(); at += length, i += step) {
    std::memcpy(bytes_.data() + at, record_of(runs, picks[i]).data(), length);
  }
}

Status ParallelOutput::finish(std::string& state) {
  std::vector<component::Tail> tails(writers_.size());
  if (!state.empty()) {
    PIF_TRY_VALUE(tails, unpack_tails(state, writers_.size()));
  }
  for (std::size_t lfs = 0; lfs < writers_.size(); ++lfs) {
    if (!writers_[lfs] || writers_[lfs]->rows() == 0) continue;
    PIF_TRY_VALUE(const component::Tail tail, writers_[lfs]->finish());
    if (tail.rows > tails[lfs].rows) tails[lfs] = tail;
  }
  state = pack_tails(tails);
  return {};
}

// ---- one after another --------------------------------------------------------------------------------------------

namespace {

// Rows on their way to one component, in order.
class Appender {
 public:
  Appender(const tool::Output& output, const component::Tail& tail, component::Files& files)
      : format_(output.format()), record_(output.format()), writer_(output.shape(), tail, files) {}

  [[nodiscard]] Status add(Bytes record) {
    const std::size_t size = record_.size(record);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    record_.copy(record, bytes_.data() + at);
    lengths_.push_back(static_cast<std::uint32_t>(size));
    return bytes_.size() >= kAppendBytes ? flush() : Status();
  }
  // A row that holds parity, which this release does not compute.
  [[nodiscard]] Status add_empty() {
    const std::size_t size = format_.is_fixed() ? format_.record_length : 0;
    bytes_.resize(bytes_.size() + size);
    lengths_.push_back(static_cast<std::uint32_t>(size));
    return {};
  }
  [[nodiscard]] Result<component::Tail> finish() {
    PIF_TRY(flush());
    return writer_.finish();
  }

 private:
  [[nodiscard]] Status flush() {
    if (lengths_.empty()) return {};
    if (format_.is_fixed()) {
      PIF_TRY(writer_.write_rows(writer_.rows(), lengths_.size(), {bytes_.data(), format_.record_length}));
    } else {
      PIF_TRY(writer_.append_rows(lengths_, bytes_));
    }
    lengths_.clear();
    bytes_.clear();
    return {};
  }

  Format format_;
  OutputRecord record_;
  component::Writer writer_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Status append_rows(const tool::Output& output, LfsIndex lfs, component::Files& files, std::uint64_t first,
                   std::span<const Pick> picks, std::span<const RunView> runs, std::string& state) {
  component::Tail tail;
  if (!state.empty()) {
    PIF_TRY_VALUE(const auto before, unpack_tails(state, 1));
    tail = before[0];
  }
  const parity::Layout& layout = output.layout();
  Appender appender(output, tail, files);
  const Row end = layout.rows(lfs, first + picks.size());
  for (Row row = tail.rows; row < end; ++row) {
    const auto record = layout.record_at({lfs, row});
    if (!record) {
      PIF_TRY(appender.add_empty());
    } else {
      PIF_TRY(appender.add(record_of(runs, picks[*record - first])));
    }
  }
  PIF_TRY_VALUE(tail, appender.finish());
  state = pack_tails({&tail, 1});
  return {};
}

// ---- tails --------------------------------------------------------------------------------------------------------

namespace {

using Words = std::array<std::uint64_t, 4>;

}  // namespace

std::string pack_tails(std::span<const component::Tail> tails) {
  std::string text;
  for (const component::Tail& tail : tails) {
    const Words words = {tail.rows, tail.bytes, tail.data_sum, tail.index_sum};
    text.append(reinterpret_cast<const char*>(words.data()), sizeof words);
  }
  return text;
}

Result<std::vector<component::Tail>> unpack_tails(const std::string& text, std::size_t count) {
  if (text.size() != count * sizeof(Words)) return fail(Code::kInternal, "the workers do not agree on the output's components");
  std::vector<component::Tail> tails(count);
  for (std::size_t i = 0; i < count; ++i) {
    Words words;
    std::memcpy(words.data(), text.data() + i * sizeof words, sizeof words);
    tails[i] = {words[0], words[1], words[2], words[3]};
  }
  return tails;
}

}  // namespace pif::sort
