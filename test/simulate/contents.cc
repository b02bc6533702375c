#include "simulate/contents.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::simulate {
namespace {

double seconds(Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

bool is_at_least(const FileLength& length, const FileLength& least) {
  return length.records >= least.records && length.bytes >= least.bytes;
}

}  // namespace

Contents::Bytes stamped_bytes(std::uint64_t stamp, std::size_t size) {
  Contents::Bytes out(std::max(size, kStampBytes));
  fill_record({stamp, 0}, out);
  return out;
}

Contents::Bytes stamped_lines(std::uint64_t stamp, std::span<const std::uint32_t> lengths) {
  std::string text;
  std::uint64_t word = stamp * 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t end = text.size() + lengths[i];
    PIF_ASSERT(lengths[i] >= (i == 0 ? kStampLine : 1), i, lengths[i]);
    if (i == 0) text += fmt::format("{:016x} ", stamp);
    while (text.size() + 1 < end) {
      word = word * 6364136223846793005ULL + 1442695040888963407ULL;
      text += static_cast<char>('a' + (word >> 40) % 26);
    }
    text += '\n';
  }
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// ---- what is done ----

void Contents::created(FileNumber id, const Format& format, Bytes bytes, std::uint64_t records) {
  File& file = files_[id];
  file.format = format;
  file.records = records;
  file.image = bytes;
  file.is_known.assign(bytes.size(), true);
  file.lengths.push_back({Time{}, {records, bytes.size()}});
  file.created = std::move(bytes);
}

Contents::Append Contents::begin_append(FileNumber id, Bytes bytes, std::uint64_t records) {
  pieces_.push_back({id, std::move(bytes), records, {}, kNever});
  files_[id].appends.push_back(pieces_.size() - 1);
  return pieces_.size() - 1;
}

void Contents::appended(Append append, std::uint64_t first, Time now) {
  Piece& piece = pieces_[append];
  File& file = files_[piece.file];
  piece.first = first;
  piece.end = now;
  if (!file.format.is_fixed()) return file.lengths.push_back({now, {first + piece.records, 0}});
  const std::uint64_t end = first + piece.bytes.size();
  const std::uint64_t length = file.format.record_length;
  file.lengths.push_back({now, {(end + length - 1) / length, end}});
  saw_bytes(piece.file, first, piece.bytes);
}

// ---- what is seen ----

void Contents::saw_length(FileNumber id, const FileLength& file_length, const Span& when) {
  File& file = files_[id];
  for (const Known& known : file.lengths) {
    if (known.at >= when.begin || is_at_least(file_length, known.least)) continue;
    return oracle_.accuse(fmt::format("file {:x}: {} records, {} bytes at {:.6f}, but {} and {} were there at {:.6f}",
                                      id, file_length.records, file_length.bytes, seconds(when.end),
                                      known.least.records, known.least.bytes, seconds(known.at)));
  }
  std::uint64_t most = file.created.size();
  for (const Append append : file.appends) most += pieces_[append].bytes.size();
  if (file_length.bytes > most)
    oracle_.accuse(fmt::format("file {:x}: {} bytes at {:.6f}, but only {} were ever written", id, file_length.bytes,
                               seconds(when.end), most));
  if (file.format.is_fixed() && !is_fixed_file_length(file.format.record_length, file_length))
    oracle_.accuse(fmt::format("file {:x}: {} records of {} bytes, and {} bytes", id, file_length.records,
                               file.format.record_length, file_length.bytes));
  file.lengths.push_back({when.end, file_length});
}

void Contents::saw_bytes(FileNumber id, std::uint64_t offset, std::span<const std::byte> bytes) {
  File& file = files_[id];
  if (file.image.size() < offset + bytes.size()) {
    file.image.resize(offset + bytes.size());
    file.is_known.resize(file.image.size());
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = offset + i;
    if (file.is_known[at] && file.image[at] != bytes[i])
      return oracle_.accuse(fmt::format("file {:x}: byte {} (of those from {} to {}) is {:02x}, and was {:02x}", id, at,
                                        offset, offset + bytes.size(), static_cast<unsigned>(bytes[i]),
                                        static_cast<unsigned>(file.image[at])));
    file.image[at] = bytes[i];
    file.is_known[at] = true;
  }
}

void Contents::saw_line(FileNumber id, std::uint64_t record, std::span<const std::byte> bytes) {
  const auto ends = std::count(bytes.begin(), bytes.end(), std::byte{'\n'});
  if (ends != 1 || bytes.back() != std::byte{'\n'})
    return oracle_.accuse(
        fmt::format("file {:x}, record {}: {} bytes with {} line ends", id, record, bytes.size(), ends));
  const auto [known, is_new] = files_[id].lines.try_emplace(record, part(bytes));
  if (!is_new && !std::equal(bytes.begin(), bytes.end(), known->second.begin(), known->second.end()))
    oracle_.accuse(fmt::format("file {:x}, record {}: it is another one than before", id, record));
}

std::optional<Contents::Append> Contents::find_at(std::span<const std::byte> rest,
                                                  const std::vector<Append>& left) const {
  for (const Append append : left) {
    const Bytes& bytes = pieces_[append].bytes;
    if (bytes.size() <= rest.size() && std::equal(bytes.begin(), bytes.end(), rest.begin())) return append;
  }
  return std::nullopt;
}

void Contents::check_place(FileNumber id, const Piece& piece, std::uint64_t offset, std::uint64_t record) {
  const std::uint64_t at = files_[id].format.is_fixed() ? offset : record;
  if (piece.first && *piece.first != at)
    oracle_.accuse(fmt::format("file {:x}: an append was acknowledged at {}, and is at {}", id, *piece.first, at));
}

// What was read of single records, and all of them: of what was created the lines are known from the beginning.
void Contents::check_lines(FileNumber id, const File& file, std::span<const std::byte> bytes) {
  std::uint64_t record = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{'\n'}) continue;
    const auto line = bytes.subspan(begin, i + 1 - begin);
    const auto known = file.lines.find(record);
    const bool is_same =
        known == file.lines.end() || std::equal(line.begin(), line.end(), known->second.begin(), known->second.end());
    if (!is_same) oracle_.accuse(fmt::format("file {:x}, record {}: alone it is another one", id, record));
    ++record;
    begin = i + 1;
  }
}

void Contents::saw_all(FileNumber id, std::span<const std::byte> bytes, const Span& when) {
  const std::size_t before = oracle_.violations().size();
  saw_bytes(id, 0, bytes);
  const File& file = files_[id];
  if (oracle_.violations().size() > before) return;
  if (bytes.size() < file.created.size()) return;  // a length that fell: saw_length says so
  if (!file.format.is_fixed()) check_lines(id, file, bytes);
  std::vector<Append> left = file.appends;
  std::uint64_t record = file.records;
  for (std::size_t at = file.created.size(); at < bytes.size();) {
    const auto found = find_at(bytes.subspan(at), left);
    if (!found)
      return oracle_.accuse(fmt::format("file {:x}: nobody appended what is at byte {} of {}, or not the whole of it",
                                        id, at, bytes.size()));
    const Piece& piece = pieces_[*found];
    check_place(id, piece, at, record);
    at += piece.bytes.size();
    record += piece.records;
    std::erase(left, *found);
  }
  for (const Append append : left)
    if (pieces_[append].end < when.begin)
      oracle_.accuse(fmt::format("file {:x}: what was appended at {} until {:.6f} is not there at {:.6f}", id,
                                 pieces_[append].first.value_or(0), seconds(pieces_[append].end), seconds(when.begin)));
}

}  // namespace pif::simulate
