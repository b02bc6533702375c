#include "store/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "pif/base/assert.h"

namespace pif::lfs {

Result<component::Shape> shape_of(const proto::ComponentShape& in) {
  if (in.file() == 0) return fail(Code::kInvalid, "the component's shape names no file");
  PIF_TRY_VALUE(const Format format, format_of(in.format()));
  if (in.index() >= static_cast<std::uint32_t>(in.layout().nodes_size()))
    return fail(Code::kInvalid, fmt::format("LFS {} of a file of width {}", in.index(), in.layout().nodes_size()));
  PIF_TRY_VALUE(const std::uint32_t form, wire::form_of(in.layout()));
  const auto shape = component::Shape::of(FileId(in.file()), format, form);
  if (in.chunk_bytes() != 0 && in.chunk_bytes() != shape.chunk_bytes)
    return fail(Code::kInvalid, fmt::format("chunks of {} bytes; these records have chunks of {}", in.chunk_bytes(),
                                            shape.chunk_bytes));
  return shape;
}

bool is_same_shape(const proto::ComponentShape& a, const proto::ComponentShape& b) {
  const auto& left = a.layout();
  const auto& right = b.layout();
  return a.format().kind() == b.format().kind() && a.format().record_length() == b.format().record_length() &&
         a.format().delimiter() == b.format().delimiter() && a.index() == b.index() && left.form() == right.form() &&
         std::equal(left.nodes().begin(), left.nodes().end(), right.nodes().begin(), right.nodes().end()) &&
         std::equal(left.bevies().begin(), left.bevies().end(), right.bevies().begin(), right.bevies().end());
}

void set_tail(proto::ComponentState& state, const component::Tail& tail) {
  state.set_rows(tail.rows);
  state.set_bytes(tail.bytes);
  state.set_data_tail_sum(tail.data_sum);
  state.set_index_tail_sum(tail.index_sum);
}

std::string name_of(FileId file) { return fmt::format("{}", file.value); }

bool parse_file_name(const std::string& name, FileId& file) {
  const auto dot = name.find('.');
  if (dot == std::string::npos || dot == 0) return false;
  const auto extension = std::string_view(name).substr(dot);
  constexpr std::array<std::string_view, 7> kExtensions = {".dat", ".sum", ".idx", ".isum", ".par", ".psum", ".pap"};
  if (std::find(kExtensions.begin(), kExtensions.end(), extension) == kExtensions.end()) return false;
  const auto [end, error] = std::from_chars(name.data(), name.data() + dot, file.value, 16);
  return error == std::errc() && end == name.data() + dot;
}

std::uint64_t fixed_component_bytes(const parity::Layout& layout, LfsIndex index, std::uint32_t record_length,
                                    std::uint64_t rows, const FileLength& file_length) {
  PIF_ASSERT(record_length > 0 && index < layout.width(), record_length, index);
  const std::uint64_t whole = rows * record_length;
  if (rows == 0 || file_length.records == 0) return whole;
  const auto last = layout.locate(file_length.records - 1);
  if (last.lfs != index || last.row + 1 != rows) return whole;
  const std::uint64_t missing = file_length.records * record_length - file_length.bytes;
  PIF_ASSERT(missing < record_length && missing <= whole, missing, record_length, whole);
  return whole - missing;
}

}  // namespace pif::lfs
