// The records of a file as rows of a matrix: what its elements are, how many of them a row has, and what of it is
// wanted. Attributes of the file say it where the user does not; a transpose leaves them on its output. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pif/base/format.h"
#include "pif/base/result.h"
#include "pif/matrix/element.h"

namespace pif::transpose {

using Attributes = std::map<std::string, std::string>;

// The user's options for it.
struct ShapeOptions {
  std::optional<std::uint64_t> columns;  // elements of a row
  std::optional<std::uint32_t> element_bits;
  std::optional<matrix::BitOrder> order;
  std::string rows = ":", columns_range = ":";  // "A:B"
};

struct Shape {
  matrix::Element element;
  Range rows;  // that are transposed
  Range columns;

  std::uint64_t row_count() const { return rows.end - rows.begin; }
  std::uint64_t column_count() const { return columns.end - columns.begin; }
  bool empty() const { return row_count() == 0 || column_count() == 0; }
  // Bytes of a row of the result, whose rows are this one's columns: its records have record_length() bytes.
  std::uint64_t output_row_bytes() const { return element.bytes_of(row_count()); }
  FileLength output_file_length() const { return {column_count(), column_count() * output_row_bytes()}; }
};

// The matrix that a file with this format, length and these attributes holds. kInvalid says what does not fit; path:
// for that.
[[nodiscard]] Result<Shape> shape_of(const std::string& path, const Format& format, const FileLength& file_length,
                                     const Attributes& attributes, const ShapeOptions& wanted);

// Attributes of the transposed file: its element and number of columns; a kept header of an image (PBM) or of genotypes
// (PLINK 1) says the new shape. Others are kept as they are.
Attributes output_attributes(Attributes attributes, const Shape& shape);

}  // namespace pif::transpose
