#include "passes.h"

#include <algorithm>
#include <cstring>

#include "pif/tool/parts.h"

namespace pif::transpose {
namespace {

constexpr std::size_t kLoadBytes = 1u << 20;
constexpr std::size_t kPartBytes = 16u << 10;  // of rows: less is not worth a thread

// Every second of `count` grains, from `from` to `to`: steps of one or two grains on either side.
void copy_grains(const std::byte* from, std::size_t from_step, std::byte* to, std::size_t to_step, std::size_t bytes,
                 std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

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

void Passes::split(std::uint64_t grain, Range rows) {
  const std::size_t bytes = plan_.grain_bytes(grain), half = plan_.row_bytes() / 2;
  const std::uint64_t count = plan_.columns() / grain / 2;
  for (std::uint64_t i = rows.begin; i < rows.end; ++i) {
    const std::size_t stays = is_odd(i, grain) ? bytes : 0;
    copy_grains(row(i) + stays, 2 * bytes, staying_.space().data() + i * half, bytes, bytes, count);
    copy_grains(row(i) + (bytes - stays), 2 * bytes, moving_.space().data() + i * half, bytes, bytes, count);
  }
}

void Passes::join(std::uint64_t grain, Range rows) {
  const std::size_t bytes = plan_.grain_bytes(grain), half = plan_.row_bytes() / 2;
  const std::uint64_t count = plan_.columns() / grain / 2, distance = grain / input_.layout().width();
  for (std::uint64_t i = rows.begin; i < rows.end; ++i) {
    const std::size_t stays = is_odd(i, grain) ? bytes : 0;
    const std::uint64_t partner = is_odd(i, grain) ? i - distance : i + distance;
    copy_grains(staying_.space().data() + i * half, bytes, row(i) + stays, 2 * bytes, bytes, count);
    copy_grains(moving_.space().data() + partner * half, bytes, row(i) + (bytes - stays), 2 * bytes, bytes, count);
  }
}

Status Passes::run() {
  std::uint64_t grain = plan_.side / 2;
  for (std::uint32_t pass = 0; pass < plan_.passes; ++pass, grain /= 2) {
    PIF_TRY(for_parts(numbers_.size(), [&](Range rows) -> Status { return split(grain, rows), Status(); }));
    PIF_TRY(team_.barrier());
    PIF_TRY(for_parts(numbers_.size(), [&](Range rows) -> Status { return join(grain, rows), Status(); }));
    PIF_TRY(team_.barrier());
    worker_.progress(pass, plan_.passes + 1);
  }
  return {};
}

}  // namespace pif::transpose
