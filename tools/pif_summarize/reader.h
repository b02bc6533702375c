// Fields of records, as text and as numbers. Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pif/tool/fields.h"
#include "summarize.h"

namespace pif::summarize {

class FieldReader {
 public:
  FieldReader(FieldSpec spec, tool::FieldSyntax syntax) : spec_(std::move(spec)), syntax_(syntax) {}

  const std::string& name() const { return spec_.name; }
  // Nothing: the record has no such field. Valid until the next call, and as long as the record.
  std::optional<std::string_view> text(std::span<const std::byte> record);
  // The number in such a text. Nothing: it is no number.
  std::optional<double> number(std::string_view text) const;

 private:
  FieldSpec spec_;
  tool::FieldSyntax syntax_;
  std::string buffer_;
};

}  // namespace pif::summarize
