#include "matrix/shape.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "../../pif/text/pbm.h"
#include "../../pif/text/text.h"
#include "matrix/header_kinds.h"

namespace pif::transpose {
namespace {

constexpr const char* kColumns = "matrix.columns";
constexpr const char* kElementBits = "matrix.element-bits";
constexpr const char* kBitOrder = "matrix.bit-order";

std::string value_of(const Attributes& attributes, const char* name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string() : found->second;
}

std::optional<std::uint64_t> number_of(const Attributes& attributes, const char* name) {
  const std::string text = value_of(attributes, name);
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc()) return std::nullopt;
  return number;
}

std::optional<cli::PbmHeader> image_of(const Attributes& attributes) {
  return cli::parse_pbm(value_of(attributes, kHeaderAttribute));
}

bool is_genotypes(const Attributes& attributes) { return is_bed(value_of(attributes, kHeaderAttribute)); }

matrix::Element element_of(const Attributes& attributes, const ShapeOptions& wanted) {
  const std::uint64_t stored = number_of(attributes, kElementBits).value_or(is_genotypes(attributes) ? 2 : 1);
  matrix::Element element;
  element.bits =
      wanted.element_bits.value_or(matrix::Element::is_width(stored) ? static_cast<std::uint32_t>(stored) : 1);
  const bool lsb = value_of(attributes, kBitOrder) == "lsb" || is_genotypes(attributes);
  element.order = wanted.order.value_or(lsb ? matrix::BitOrder::kLsb : matrix::BitOrder::kMsb);
  return element;
}

Result<std::uint64_t> columns_of(const std::string& path, const Attributes& attributes, const ShapeOptions& wanted) {
  if (wanted.columns) return *wanted.columns;
  if (const auto stored = number_of(attributes, kColumns)) return *stored;
  if (const auto image = image_of(attributes)) return image->width();
  return fail(Code::kInvalid, fmt::format("{}: how many elements has a row? Say it with --columns: {}", path,
                                          is_genotypes(attributes) ? "the number of samples of a .bed file by variants"
                                                                   : "the file has no attribute that says it"));
}

Status check_header(const std::string& path, const Attributes& attributes, matrix::Element element) {
  if (is_genotypes(attributes) && element != matrix::Element{2, matrix::BitOrder::kLsb})
    return fail(Code::kInvalid,
                fmt::format("{} has the header of a .bed file, whose elements have 2 bits, the least significant "
                            "first: leave --element-bits and --bit-order away",
                            path));
  if (image_of(attributes) && element != matrix::Element{1, matrix::BitOrder::kMsb})
    return fail(Code::kInvalid,
                fmt::format("{} has the header of a PBM image, whose elements are bits, the most significant "
                            "first: leave --element-bits and --bit-order away",
                            path));
  return {};
}

// The numbers of an image's header are those of the matrix. They are not if somebody has added rows to it.
Status check_image(const std::string& path, const Attributes& attributes, std::uint64_t columns, std::uint64_t rows) {
  const auto image = image_of(attributes);
  if (!image) return {};
  if (image->width() != columns)
    return fail(Code::kInvalid, fmt::format("{} has the header of a PBM image whose rows have {} bits, not {}: leave "
                                            "--columns away",
                                            path, image->width(), columns));
  if (image->height() == rows) return {};
  return fail(Code::kCorrupt, fmt::format("{}: the header of the PBM image says {} rows, but the file has {} records",
                                          path, image->height(), rows));
}

Status check_records(const std::string& path, const Format& format, const FileLength& file_length,
                     matrix::Element element, std::uint64_t columns) {
  if (!format.is_fixed())
    return fail(Code::kInvalid, fmt::format("{} has records of variable length: rows of a matrix have one length "
                                            "(pif put --record-length)",
                                            path));
  if (file_length.bytes != file_length.records * format.record_length)
    return fail(Code::kInvalid,
                fmt::format("{}: the last record is shorter than {} bytes: all rows of a matrix have one length "
                            "(pif put --record-length)",
                            path, format.record_length));
  const bool fits =
      columns <= format.record_length * std::uint64_t{8} && element.bytes_of(columns) == format.record_length;
  if (file_length.records > 0 && !fits)
    return fail(Code::kInvalid,
                fmt::format("{}: records have {} bytes, which is not what {} elements of {} bits take: give "
                            "--columns and --element-bits as they are",
                            path, format.record_length, columns, element.bits));
  return {};
}

Result<Range> window(const std::string& text, std::uint64_t count) {
  PIF_TRY_VALUE(const cli::OpenRange range, cli::parse_range(text));
  const Range clipped = range.clip(count);
  return clipped.empty() ? Range{0, 0} : clipped;
}

Status check_output(const std::string& path, const Shape& shape) {
  if (shape.output_row_bytes() <= kRecordLengthMax) return {};
  return fail(Code::kTooLarge,
              fmt::format("{}: {} rows become rows of {} bytes, but records have at most {}: transpose fewer at "
                          "a time (--rows A:B)",
                          path, shape.row_count(), shape.output_row_bytes(), kRecordLengthMax));
}

}  // namespace

Result<Shape> shape_of(const std::string& path, const Format& format, const FileLength& file_length,
                       const Attributes& attributes, const ShapeOptions& wanted) {
  Shape shape;
  shape.element = element_of(attributes, wanted);
  PIF_TRY(check_header(path, attributes, shape.element));
  PIF_TRY_VALUE(const std::uint64_t columns, columns_of(path, attributes, wanted));
  PIF_TRY(check_records(path, format, file_length, shape.element, columns));
  PIF_TRY(check_image(path, attributes, columns, file_length.records));
  PIF_TRY_VALUE(shape.rows, window(wanted.rows, file_length.records));
  PIF_TRY_VALUE(shape.columns, window(wanted.columns_range, columns));
  PIF_TRY(check_output(path, shape));
  return shape;
}

Attributes output_attributes(Attributes attributes, const Shape& shape) {
  attributes[kColumns] = std::to_string(shape.row_count());
  attributes[kElementBits] = std::to_string(shape.element.bits);
  attributes[kBitOrder] = shape.element.order == matrix::BitOrder::kMsb ? "msb" : "lsb";
  const auto header = attributes.find(kHeaderAttribute);
  if (header == attributes.end()) return attributes;
  if (is_bed(header->second)) header->second = other_bed(header->second);
  if (cli::parse_pbm(header->second)) header->second = pbm_header(shape.row_count(), shape.column_count());
  return attributes;
}

}  // namespace pif::transpose
