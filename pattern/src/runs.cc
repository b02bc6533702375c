#include "pif/pattern/runs.h"

#include <utility>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::patterns {
namespace {

constexpr std::uint64_t kOffsetMax = std::uint64_t{1} << 63;  // a gap and its mark have 64 bits

void write_varint(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  out += static_cast<char>(number);
}

// The number in front, which is taken off.
Result<std::uint64_t> read_varint(std::span<const std::byte>& bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto digits = std::to_integer<std::uint64_t>(bytes[i] & std::byte{0x7f});
    if (i > 9 || (i == 9 && digits > 1)) return fail(Code::kInvalid, "a number of over 64 bits");
    number |= digits << (7 * i);
    if ((bytes[i] & std::byte{0x80}) != std::byte{0}) continue;
    if (i > 0 && digits == 0) return fail(Code::kInvalid, "a number in more bytes than it takes");
    bytes = bytes.subspan(i + 1);
    return number;
  }
  return fail(Code::kInvalid, "the bytes end inside it");
}

tl::unexpected<Error> too_far(std::uint64_t end_max) {
  return fail(Code::kInvalid, fmt::format("it reaches beyond byte {}", end_max));
}

// The run in front, which is taken off. at: end of the run before. end_max: at most kOffsetMax.
Result<ComponentRun> read_run(std::span<const std::byte>& bytes, std::uint64_t at, std::uint64_t end_max) {
  PIF_TRY_VALUE(const std::uint64_t head, read_varint(bytes));
  PIF_TRY_VALUE(const std::uint64_t length, read_varint(bytes));
  if (length == 0) return fail(Code::kInvalid, "a piece without bytes");
  const std::uint64_t gap = head >> 1;
  if (gap > end_max - at || length > end_max - at - gap) return too_far(end_max);
  ComponentRun run{at + gap, length, length, 1};
  if ((head & 1) == 0) return run;
  PIF_TRY_VALUE(const std::uint64_t space, read_varint(bytes));
  PIF_TRY_VALUE(const std::uint64_t more, read_varint(bytes));
  const std::uint64_t left = end_max - run.end();  // behind the first piece
  if (space > left || length > left - space) return too_far(end_max);
  run.stride = space + length;
  if (more > left / run.stride - 1) return too_far(end_max);
  run.count = more + 2;
  return run;
}

}  // namespace

// ---- encoder ---- //

void RunEncoder::add(std::uint64_t offset, std::uint64_t length) {
  PIF_ASSERT(length > 0 && offset >= end(), offset, length, end());
  PIF_ASSERT(offset < kOffsetMax && length < kOffsetMax - offset, offset, length);
  payload_ += length;
  if (open_.length > 0 && offset == open_.end()) {
    open_.length += length;
    open_.stride = open_.length;
    return;
  }
  close(std::exchange(open_, {offset, length, length, 1}));
}

void RunEncoder::add_run(const ComponentRun& run) {
  PIF_ASSERT(run.count > 0);
  if (run.count == 1) return add(run.offset, run.length);
  PIF_ASSERT(run.stride >= run.length, run.stride, run.length);
  PIF_ASSERT(run.offset < kOffsetMax && run.length < kOffsetMax - run.offset, run.offset, run.length);
  PIF_ASSERT(run.count - 1 <= (kOffsetMax - run.offset - run.length) / run.stride, run.stride, run.count);
  if (run.stride == run.length) return add(run.offset, run.length * run.count);
  add(run.offset, run.length);  // the first piece may touch what was before, the last what comes
  if (run.count > 2) {
    close(std::exchange(open_, {}));
    close({run.offset + run.stride, run.length, run.stride, run.count - 2});
    payload_ += (run.count - 2) * run.length;
  }
  add(run.last(), run.length);
}

// Nothing touches the pieces in `closed`, so their length is known. None if its length is 0.
void RunEncoder::close(const ComponentRun& closed) {
  if (closed.length == 0) return;
  const bool are_alike = run_.count > 0 && run_.length == closed.length;
  const std::uint64_t distance = closed.offset - run_.last();
  if (are_alike) {
    // Several come from add_run(), behind their first piece: it is longer if it touches what was before.
    PIF_ASSERT(closed.count == 1 || closed.stride == distance, closed.count, closed.stride, distance);
    return fold(distance, closed);
  }
  if (run_.count > 0) write(run_);
  run_ = closed;
}

// closed: one more piece, or several at the same distance from one another.
void RunEncoder::fold(std::uint64_t distance, const ComponentRun& closed) {
  if (run_.count == 2 && run_.stride != distance) {  // the second piece belongs to what comes
    write({run_.offset, run_.length, run_.length, 1});
    run_ = {run_.last(), run_.length, run_.length, 1};
  }
  if (run_.count > 1 && run_.stride != distance) {
    write(run_);
    run_ = closed;
    return;
  }
  run_.stride = distance;
  run_.count += closed.count;
}

void RunEncoder::write(const ComponentRun& run) {
  const bool is_strided = run.count > 1;
  write_varint((run.offset - written_) << 1 | (is_strided ? 1 : 0), out_);
  write_varint(run.length, out_);
  if (is_strided) {
    write_varint(run.stride - run.length, out_);
    write_varint(run.count - 2, out_);
  }
  written_ = run.end();
}

std::string RunEncoder::finish() {
  close(std::exchange(open_, {}));
  if (run_.count > 0) write(run_);
  std::string out = std::move(out_);
  *this = {};
  return out;
}

// ---- decoder ---- //

Result<RunDecoder> RunDecoder::make(std::span<const std::byte> bytes, const RunLimits& limits) {
  PIF_ASSERT(limits.end_max <= kOffsetMax, limits.end_max);
  if (bytes.size() > kRunsBytesMax)
    return fail(Code::kInvalid, fmt::format("{} bytes of runs; at most {}", bytes.size(), kRunsBytesMax));
  RunDecoder decoder(bytes);
  PIF_TRY(decoder.check(limits));
  return decoder;
}

Status RunDecoder::check(const RunLimits& limits) {
  for (std::span<const std::byte> rest = rest_; !rest.empty();) {
    auto run = read_run(rest, end_, limits.end_max);
    const Status status = run ? count(*run, limits) : fail(std::move(run.error()));
    if (!status) return fail(Code::kInvalid, fmt::format("run {}: {}", runs_, status.error().text));
    ++runs_;
  }
  return {};
}

Status RunDecoder::count(const ComponentRun& run, const RunLimits& limits) {
  if (run.count > limits.pieces_max - pieces_)
    return fail(Code::kInvalid, fmt::format("with it there are over {} pieces", limits.pieces_max));
  if (run.count > (limits.payload_max - payload_) / run.length)
    return fail(Code::kInvalid, fmt::format("with it the pieces have over {} bytes", limits.payload_max));
  pieces_ += run.count;
  payload_ += run.count * run.length;
  end_ = run.end();
  return {};
}

std::optional<ComponentRun> RunDecoder::next() {
  if (rest_.empty()) return std::nullopt;
  auto run = read_run(rest_, at_, end_);
  PIF_ASSERT(run.has_value());  // make() has checked it
  at_ = run->end();
  return *run;
}

}  // namespace pif::patterns
