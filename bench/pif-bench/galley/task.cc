#include "galley/task.h"

#include <array>

#include <nlohmann/json.hpp>

#include "pif/base/assert.h"
#include "pif/base/limits.h"
#include "pif/pattern/builders.h"

namespace pif::bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Task, folder, route, by_message, path, token, work, shape, index, count, lfss,
                                   record, bytes, seed, one_by_one, seconds_max, seconds_min, request_records)

namespace {

// Where the records of all processes do not fit into one record of the file, a process has a part of some rows of every
// LFS, and nothing of others.
struct Rows {
  std::uint64_t every;   // which row comes next
  std::uint64_t stride;  // bytes of the file until then
  std::uint64_t first;   // where in the file the first part is
};
Rows rows_of(const Task& task) {
  const std::uint64_t at = task.index * task.record, row_bytes = kByteRecordLength * task.lfss;
  const std::uint64_t every = task.record * task.count / kByteRecordLength;
  return {every, every * row_bytes, at / kByteRecordLength * row_bytes + at % kByteRecordLength};
}

std::int64_t is(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::uint64_t Task::records() const { return bytes / record / (shape == Shape::kBroadcast ? 1 : count); }

std::uint64_t Task::offset_of(std::uint64_t i) const {
  if (shape == Shape::kBroadcast) return i * record;
  if (shape == Shape::kPartitioned) return bytes / count * index + i * record;
  if (record * count <= kByteRecordLength) return (i * count + index) * record;
  const Rows rows = rows_of(*this);
  return rows.first + i / lfss * rows.stride + i % lfss * kByteRecordLength;
}

File::Pieces Task::pieces(std::uint64_t first, std::uint64_t n) const {
  using namespace patterns;
  File::Pieces out;
  const Rows rows = rows_of(*this);
  if (shape != Shape::kInterleaved || rows.every <= 1) {
    const std::uint64_t stride = shape == Shape::kInterleaved ? record * count : record;
    out.file = simple_strided(is(offset_of(0)), record, is(stride), records());
  } else {
    const std::array<Stride, 2> strides = {Stride{kByteRecordLength, lfss}, Stride{is(rows.stride), records() / lfss}};
    auto nested = nested_strided(is(rows.first), record, strides);
    PIF_ASSERT(nested.has_value());
    out.file = std::move(*nested);
  }
  out.memory = simple_strided(is(first * memory_stride()), record, is(memory_stride()), n);
  out.skip = first * record;
  out.bytes = n * record;
  return out;
}

std::string Task::to_text() const { return nlohmann::json(*this).dump(); }
Task Task::from_text(const std::string& text) { return nlohmann::json::parse(text).get<Task>(); }

std::string to_hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

}  // namespace pif::bench
