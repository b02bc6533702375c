#include "simulate/together.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::simulate {
namespace {

double seconds(Time time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

// Calls back for each byte of the range that is among `size` bytes from `offset` on, by its place among these.
template <typename Each>
void for_each_byte(const Together::Range& range, std::uint64_t offset, std::size_t size, const Each& each) {
  const std::uint64_t begin = std::max(range.offset, offset);
  const std::uint64_t end = std::min(range.offset + range.size, offset + size);
  for (std::uint64_t at = begin; at < end; ++at) each(at - offset);
}

}  // namespace

// ---- who takes part ----

void Together::created(FileNumber id, std::uint32_t record_length, const std::string& creator,
                       std::uint64_t power_losses) {
  File& file = files_[id];
  file.record_length = record_length;
  file.power_losses = power_losses;
  file.members[creator] = {};
}

std::vector<Together::Invitation> Together::invitations() const {
  std::vector<Invitation> out;
  for (const Invitation& one : invitations_)
    if (!files_.at(one.file).is_closed) out.push_back(one);
  return out;
}

void Together::begin_join(FileNumber file, const std::string& member) {
  files_[file].members.try_emplace(member, Member{.joined = kNever});
}

void Together::joined(FileNumber file, const std::string& member, Time now) {
  files_[file].members.at(member).joined = now;
}

void Together::begin_drop(FileNumber file, const std::string& member) {
  for (auto& [name, one] : files_[file].members)
    if (name == member || member.empty()) one.is_dropped = true;
}

// ---- what is done ----

std::byte Together::byte_of(Write write, std::uint64_t offset) {
  std::uint64_t x = (write + 1) * 0x9e3779b97f4a7c15 + offset;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9;
  return std::byte(1 + (x >> 40) % 255);
}

Together::Write Together::begin_write(FileNumber file, const std::string& member, std::vector<Range> ranges, Time now) {
  writes_.push_back({file, member, std::move(ranges), now, kNever});
  files_[file].writes.push_back(writes_.size() - 1);
  return writes_.size() - 1;
}

void Together::begin_commit(FileNumber id, Time now) {
  files_[id].first_commit = std::min(files_[id].first_commit, now);
}

void Together::committed(FileNumber id, NameOp publish) {
  File& file = files_[id];
  for (const auto& [name, member] : file.members) {
    if (member.joined >= publish.begin || member.is_done || member.is_dropped) continue;
    oracle_.accuse(fmt::format("file {:x}: it was committed while {} was writing", id, name));
  }
  not_committed(id, publish, true);
  file.publish->end = std::min(file.publish->end, publish.end);
  file.is_closed = true;
  ++commits_;
}

void Together::not_committed(FileNumber id, NameOp publish, bool is_unknown) {
  File& file = files_[id];
  if (!is_unknown || file.publish) return;
  file.publish = std::move(publish);
  file.publish->begin = file.first_commit;
  file.publish->end = kNever;
}

void Together::note_commits() {
  for (const auto& [id, file] : files_)
    if (file.publish) oracle_.note(*file.publish);
}

// ---- what is seen ----

Time Together::end_of(const File& file, const Made& write) const {
  const auto member = file.members.find(write.member);
  PIF_ASSERT(member != file.members.end(), write.file);
  return member->second.is_dropped ? kNever : write.end;
}

void Together::judge(FileNumber id, std::uint64_t offset, std::span<const std::byte> bytes, const Span& when,
                     bool is_whole) {
  const File& file = files_[id];
  std::vector<Byte> known(bytes.size());
  for (const Write number : file.writes) {
    const Made& write = writes_[number];
    if (!is_whole || end_of(file, write) >= when.begin) continue;
    for (const Range& range : write.ranges)
      for_each_byte(range, offset, bytes.size(), [&](std::size_t i) {
        known[i].newest = std::max(known[i].newest, write.begin);
        known[i].is_written = true;
      });
  }
  for (const Write number : file.writes) {
    const Made& write = writes_[number];
    if (write.begin > when.end) continue;
    for (const Range& range : write.ranges)
      for_each_byte(range, offset, bytes.size(), [&](std::size_t i) {
        if (bytes[i] == byte_of(number, offset + i) && end_of(file, write) >= known[i].newest)
          known[i].is_explained = true;
      });
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (known[i].is_explained || (bytes[i] == std::byte{0} && !known[i].is_written)) continue;
    return oracle_.accuse(
        fmt::format("file {:x}: byte {} (of those from {} to {}) is {:02x} at {:.6f}, which is {}", id, offset + i,
                    offset, offset + bytes.size(), static_cast<unsigned>(bytes[i]), seconds(when.end),
                    known[i].is_written ? "not what was acknowledged there, nor anything later" : "of nobody's write"));
  }
}

void Together::saw_unfinished(FileNumber file, std::uint64_t offset, std::span<const std::byte> bytes, const Span& when,
                              std::uint64_t power_losses) {
  judge(file, offset, bytes, when, files_[file].power_losses == power_losses);
}

void Together::saw_committed(FileNumber file, std::uint64_t offset, std::span<const std::byte> bytes,
                             const Span& when) {
  judge(file, offset, bytes, when, true);
  seen_.saw_bytes(file, offset, bytes);
}

void Together::saw_length(FileNumber id, const FileLength& file_length) {
  const File& file = files_[id];
  std::uint64_t least = 0, most = 0;
  for (const Write number : file.writes) {
    const Made& write = writes_[number];
    for (const Range& range : write.ranges) {
      most = std::max(most, range.offset + range.size);
      if (end_of(file, write) != kNever) least = std::max(least, range.offset + range.size);
    }
  }
  if (file_length.bytes < least || file_length.bytes > most)
    oracle_.accuse(fmt::format("file {:x}: {} bytes, but at least {} and at most {} were written", id,
                               file_length.bytes, least, most));
  if (!is_fixed_file_length(file.record_length, file_length))
    oracle_.accuse(fmt::format("file {:x}: {} records of {} bytes, and {} bytes", id, file_length.records,
                               file.record_length, file_length.bytes));
}

}  // namespace pif::simulate
