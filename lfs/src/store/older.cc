#include "store/older.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/parity/older_rows.h"
#include "store/convert.h"
#include "store/root.h"

namespace pif::lfs {
namespace {

constexpr std::uint64_t kBatchBytes = 1u << 20;
constexpr std::uint64_t kBatchEnds = 8 * component::kIndexChunkBytes / sizeof(std::uint64_t);

// Passes the rows of an older component on, but for the empty ones.
class Copier {
 public:
  Copier(const component::Shape& shape, const parity::OlderRows& older, const component::Reader& from,
         component::Writer& to)
      : shape_(shape), older_(older), from_(from), to_(to) {}

  Status run() { return shape_.format.is_fixed() ? copy_fixed() : copy_variable(); }

 private:
  Status copy_fixed() {
    const component::Tail& tail = from_.tail();
    const std::uint64_t length = shape_.format.record_length;
    const std::uint64_t batch =
        std::max<std::uint64_t>(kBatchBytes / shape_.chunk_bytes, 1) * (shape_.chunk_bytes / length);
    std::vector<std::byte> rows(std::min(batch, tail.rows) * length);
    for (Row first = 0, made = 0; first < tail.rows; first += batch) {
      const std::uint64_t count = std::min(batch, tail.rows - first);
      PIF_TRY(from_.read_rows(first, count, {rows.data(), length}));
      std::uint64_t kept = 0;
      for (std::uint64_t i = 0; i < count; ++i) {
        if (older_.is_empty(first + i)) continue;
        if (kept < i) std::memmove(rows.data() + kept * length, rows.data() + i * length, length);
        ++kept;
      }
      const bool has_last = first + count == tail.rows && !older_.is_empty(tail.rows - 1);
      const std::uint64_t last_bytes = has_last ? tail.bytes - (tail.rows - 1) * length : length;
      if (kept > 0)
        PIF_TRY(to_.write_rows(made, kept, {rows.data(), length},
                               last_bytes == length ? 0 : static_cast<std::uint32_t>(last_bytes)));
      made += kept;
    }
    return {};
  }

  Status copy_variable() {
    const std::uint64_t rows = from_.tail().rows;
    std::vector<std::uint64_t> ends;
    for (Row first = 0; first < rows; first += kBatchEnds) {
      const std::uint64_t count = std::min(kBatchEnds, rows - first);
      ends.resize(count + 1);
      PIF_TRY(from_.read_ends(first, count, ends));
      for (std::uint64_t at = 0; at < count;) {
        std::uint64_t end = at + 1;
        while (end < count && ends[end + 1] - ends[at] <= kBatchBytes) ++end;
        PIF_TRY(copy_some(first + at, std::span(ends).subspan(at, end - at + 1)));
        at = end;
      }
    }
    return {};
  }

  // ends: the start of row `first`, then where it and the rows after it end.
  Status copy_some(Row first, std::span<const std::uint64_t> ends) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      const std::uint64_t length = ends[i + 1] - ends[i];
      if (!older_.is_empty(first + i)) {
        lengths.push_back(static_cast<std::uint32_t>(length));
      } else if (length > 0) {
        return fail(Code::kCorrupt, fmt::format("file {}, row {}: a row of {} bytes in the place of an empty one",
                                                name_of(shape_.file), first + i, length));
      }
    }
    std::vector<std::byte> data(ends.back() - ends.front());
    if (!data.empty()) PIF_TRY(from_.read_bytes(ends.front(), data));
    return lengths.empty() ? Status() : to_.append_rows(lengths, data);
  }

  const component::Shape& shape_;
  const parity::OlderRows older_;
  const component::Reader& from_;
  component::Writer& to_;
};

// Of what shape_of() and layout_of() have accepted.
parity::OlderRows rows_of(const proto::ComponentShape& shape, const parity::Layout& layout) {
  PIF_ASSERT(layout.has_parity(), shape.file());
  return parity::OlderRows::of(layout, shape.index());
}

Result<DenseCopy> write_copy(component::Storage& storage, const std::string& root, const std::string& stem,
                             const proto::ComponentState& stored) {
  PIF_TRY_VALUE(const auto shape, shape_of(stored.shape()));
  PIF_TRY_VALUE(const auto layout, layout_of(stored.shape().layout()));
  const component::Tail tail = tail_of(stored);
  PIF_TRY(component::check_tail(shape, tail));
  using component::OpenMode;
  PIF_TRY_VALUE(auto source,
                component::open_files(storage, component::stem(root, shape.file), shape.format, OpenMode::kRead));
  DenseCopy out;
  {
    PIF_TRY_VALUE(auto target, component::open_files(storage, stem, shape.format, OpenMode::kCreate));
    const component::Reader reader(shape, tail, source);
    component::Writer writer(shape, {}, target);
    PIF_TRY(Copier(shape, rows_of(stored.shape(), layout), reader, writer).run());
    PIF_TRY_VALUE(out.tail, writer.finish());
  }
  // Readers get its descriptors: they must not be able to write.
  PIF_TRY_VALUE(auto files, component::open_files(storage, stem, shape.format, OpenMode::kRead));
  out.files = std::make_shared<component::Files>(std::move(files));
  const auto shown = shown_state(stored);
  PIF_ASSERT(out.tail.rows == shown.rows() && out.tail.bytes == shown.bytes(), out.tail.rows, out.tail.bytes,
             shown.rows(), shown.bytes());
  return out;
}

}  // namespace

Error unprotected(FileId file) {
  return {Code::kUnsupported,
          fmt::format("unprotected: file {} was made before parity was kept and can only be read; make it anew with "
                      "`pif protect FILE`",
                      name_of(file)),
          {}};
}

proto::ComponentState shown_state(const proto::ComponentState& stored) {
  proto::ComponentState out = stored;
  if (!is_older(stored.shape().layout())) return out;
  const auto shape = shape_of(stored.shape());
  const auto layout = layout_of(stored.shape().layout());
  if (!shape || !layout) return out;  // a damaged entry: shown as it is
  component::Tail tail{rows_of(stored.shape(), *layout).count(stored.rows()), stored.bytes(), 0, 0};
  if (shape->format.is_fixed())
    tail.bytes -= std::min(tail.bytes, (stored.rows() - tail.rows) * shape->format.record_length);
  set_tail(out, tail);
  return out;
}

std::uint64_t dense_copy_bytes(const proto::ComponentState& stored) {
  const auto shown = shown_state(stored);
  const std::uint64_t sums = shown.bytes() / std::max(stored.shape().chunk_bytes(), 1u) * sizeof(std::uint64_t);
  const bool has_index = !wire::format_of(stored.shape().format()).value_or(Format::variable()).is_fixed();
  return shown.bytes() + sums + (has_index ? shown.rows() * sizeof(std::uint64_t) : 0);
}

Result<DenseCopy> make_dense_copy(component::Storage& storage, const std::string& root,
                                  const proto::ComponentState& stored, std::uint64_t number) {
  PIF_ASSERT(is_older(stored.shape().layout()), stored.shape().file());
  const auto stem = fmt::format("{}/older-{}-{}", scratch_folder(root), stored.shape().file(), number);
  auto copy = write_copy(storage, root, stem, stored);
  const Status removed = component::remove_files(storage, stem);  // what stays behind goes at the next start
  if (copy && !removed) return fail(removed.error());
  return copy;
}

}  // namespace pif::lfs
