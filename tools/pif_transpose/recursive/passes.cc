#include "recursive/passes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "pif/tool/parts.h"
#include "pif/tool/read_ahead.h"

namespace pif::transpose {
namespace {

constexpr std::size_t kLoadBytes = 1u << 20;
constexpr std::size_t kBlockBytes = 256u << 10;  // of rows: the next ones are read while these are worked on
constexpr std::size_t kWriteBytes = 128u << 10;  // in one call
constexpr std::size_t kPartBytes = 16u << 10;    // of rows: less is not worth a thread

// Bytes in a row to a place in a scratch file, which is mapped, too. They are written, not copied into the mapping: a
// page that is wholly overwritten need not be read from the disk before.
class PieceWriter {
 public:
  PieceWriter(const tool::Scratch& to, std::uint64_t offset)
      : to_(to), offset_(offset), buffer_(std::make_unique_for_overwrite<std::byte[]>(kWriteBytes)) {}

  void put(const std::byte* from, std::size_t size) {
    if (size > kWriteBytes - used_) flush();
    if (size > kWriteBytes) return write({from, size});
    std::memcpy(buffer_.get() + used_, from, size);
    used_ += size;
  }
  [[nodiscard]] Status end() {
    flush();
    return std::move(status_);
  }

 private:
  void flush() { write({buffer_.get(), std::exchange(used_, 0)}); }
  void write(std::span<const std::byte> bytes) {
    if (status_) status_ = to_.write_at(offset_, bytes);
    offset_ += bytes.size();
  }

  const tool::Scratch& to_;
  std::uint64_t offset_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t used_ = 0;
  Status status_;  // of the first write that failed
};

}  // namespace

Passes::Passes(tool::Worker& worker, tool::Team& team, tool::Input& input, const RecursivePlan& plan)
    : worker_(worker), team_(team), input_(input), plan_(plan) {}

void Passes::number_rows() {
  const parity::Layout& layout = input_.layout();
  const RecordNumber begin = plan_.shape.rows.begin;
  const Row first = layout.rows(input_.index(), begin);
  // All bands have the same number of rows on each LFS.
  const std::uint64_t count =
      plan_.passes == 0 ? rows_here(input_, plan_.shape.rows).size() : plan_.rows() / layout.width();
  for (std::uint64_t i = 0; i < count; ++i) numbers_.push_back(layout.record_at({input_.index(), first + i}) - begin);
}

// Consecutive rows, as tasks: what they touch may have to come from a disk.
Status Passes::for_parts(std::uint64_t rows, const std::function<Status(Range)>& f) {
  const std::uint64_t least = (kPartBytes - 1) / plan_.row_bytes() + 1;
  const tool::Parts parts({0, rows}, {.most = worker_.threads(), .least = least});
  return worker_.run_tasks(parts.size(), [&](std::size_t i) { return f(parts[i]); });
}

Status Passes::load() {
  if (!input_.is_here()) return {};
  number_rows();
  const std::uint64_t bytes = numbers_.size() * plan_.row_bytes();
  for (tool::Scratch* const scratch : {&rows_, &staying_, &moving_}) {
    if (scratch != &rows_ && plan_.passes == 0) continue;
    PIF_TRY_VALUE(*scratch, worker_.scratch());
    PIF_TRY(scratch->allocate(scratch == &rows_ ? bytes : bytes / 2));
  }
  std::atomic<std::uint64_t> bytes_read = 0;
  PIF_TRY(for_parts(rows_here(input_, plan_.shape.rows).size(), [&](Range rows) { return load(rows, bytes_read); }));
  input_.count_read(bytes_read);
  return {};
}

Status Passes::load(Range rows, std::atomic<std::uint64_t>& bytes_read) {
  const Row begin = rows_here(input_, plan_.shape.rows).begin;
  RowSource source(input_, {begin + rows.begin, begin + rows.end});
  const matrix::Element element = plan_.shape.element;
  const Range wanted{(plan_.shape.columns.begin - plan_.skipped) * element.bits / 8,
                     element.bytes_of(plan_.shape.columns.end)};
  source.begin_stripe(wanted);
  const std::uint64_t at_once = std::max<std::uint64_t>(kLoadBytes / wanted.size(), 1);
  for (std::uint64_t first = 0; first < source.count(); first += at_once) {
    const std::uint64_t count = std::min(at_once, source.count() - first);
    PIF_TRY_VALUE(const matrix::ConstRows in, source.next(count));
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(row(rows.begin + first + i), in.base + i * in.pitch, wanted.size());
  }
  bytes_read += source.take_bytes_read();
  return {};
}

Status Passes::split(std::uint64_t grain, Range part) {
  const std::size_t bytes = plan_.grain_bytes(grain), half = plan_.row_bytes() / 2;
  const std::uint64_t count = plan_.columns() / grain / 2;
  PieceWriter staying(staying_, part.begin * half), moving(moving_, part.begin * half);
  go_through(
      part, [this](Range rows) { read_ahead(rows_, rows); },
      [&](std::uint64_t i) {
        const std::size_t stays = is_odd(i, grain) ? bytes : 0;
        const std::byte* from = row(i);
        for (std::uint64_t k = 0; k < count; ++k, from += 2 * bytes) {
          staying.put(from + stays, bytes);
          moving.put(from + (bytes - stays), bytes);
        }
      });
  PIF_TRY(staying.end());
  return moving.end();
}

Status Passes::join(std::uint64_t grain, Range part) {
  const std::size_t bytes = plan_.grain_bytes(grain), half = plan_.row_bytes() / 2;
  const std::uint64_t count = plan_.columns() / grain / 2, distance = grain / input_.layout().width();
  const auto ahead = [&](Range rows) {
    read_ahead(staying_, rows);
    read_partners_ahead(grain, rows);
  };
  PieceWriter joined(rows_, part.begin * plan_.row_bytes());
  go_through(part, ahead, [&](std::uint64_t i) {
    const std::byte* first = staying_.bytes().data() + i * half;
    const std::byte* second = moving_.bytes().data() + (is_odd(i, grain) ? i - distance : i + distance) * half;
    if (is_odd(i, grain)) std::swap(first, second);
    for (std::uint64_t k = 0; k < count; ++k, first += bytes, second += bytes) {
      joined.put(first, bytes);
      joined.put(second, bytes);
    }
  });
  return joined.end();
}

void Passes::read_ahead(const tool::Scratch& scratch, Range rows) const {
  const std::uint64_t bytes = &scratch == &rows_ ? plan_.row_bytes() : plan_.row_bytes() / 2;
  tool::read_ahead(scratch.bytes().subspan(rows.begin * bytes, rows.size() * bytes));
}

// Rows that lie close to their partners have them among themselves.
void Passes::read_partners_ahead(std::uint64_t grain, Range rows) const {
  if (rows.empty()) return;
  const std::uint64_t distance = grain / input_.layout().width(), end = numbers_.size();
  const auto shifted = [&](std::uint64_t row) { return is_odd(row, grain) ? row - distance : row + distance; };
  const std::uint64_t a = shifted(rows.begin), b = shifted(rows.end - 1);
  for (const std::uint64_t first : {a, b + 1 - std::min(b + 1, rows.size())})
    read_ahead(moving_, {first, std::min(first + rows.size(), end)});
}

// f(row) for all rows of a part, in order; read_ahead(rows) comes a block before them.
void Passes::go_through(Range part, const std::function<void(Range)>& read_ahead,
                        const std::function<void(std::uint64_t)>& f) const {
  const std::uint64_t step = (kBlockBytes - 1) / plan_.row_bytes() + 1;
  const auto block = [&](std::uint64_t first) { return Range{first, std::min(first + step, part.end)}; };
  if (!part.empty()) read_ahead(block(part.begin));
  for (std::uint64_t i = part.begin; i < part.end; ++i) {
    if ((i - part.begin) % step == 0 && i + step < part.end) read_ahead(block(i + step));
    f(i);
  }
}

Status Passes::run() {
  std::uint64_t grain = plan_.side / 2;
  for (std::uint32_t pass = 0; pass < plan_.passes; ++pass, grain /= 2) {
    PIF_TRY(for_parts(numbers_.size(), [&](Range rows) { return split(grain, rows); }));
    PIF_TRY(team_.barrier());
    PIF_TRY(for_parts(numbers_.size(), [&](Range rows) { return join(grain, rows); }));
    PIF_TRY(team_.barrier());
    worker_.progress(pass, plan_.passes + 1);
  }
  return {};
}

}  // namespace pif::transpose
