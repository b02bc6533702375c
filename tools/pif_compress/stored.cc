#include "stored.h"

#include <fmt/format.h>

#include "codec.h"
#include "pif/base/limits.h"
#include "pif/base/packed.h"
#include "pif/tool/head.h"

namespace pif::compress {
namespace {

constexpr std::uint32_t kVersion = 1;

}  // namespace

Description Description::of(const Format& format, const FileLength& file_length, const parity::Layout& layout) {
  Description made;
  made.version = kVersion;
  made.kind = static_cast<std::uint8_t>(format.kind);
  made.delimiter = format.delimiter;
  made.record_length = format.record_length;
  made.records = file_length.records;
  made.bytes = file_length.bytes;
  made.width = layout.width();
  made.bevies = packed(layout.bevies());
  return made;
}

Result<Format> Description::format() const {
  const Format format{static_cast<RecordKind>(kind), record_length, delimiter};
  PIF_TRY(format.validate());
  return format;
}

Result<parity::Layout> Description::layout() const {
  const auto sizes =
      PackedNumbers<std::uint32_t>::all_of(std::as_bytes(std::span(bevies)), bevies.size() / sizeof(std::uint32_t));
  if (!sizes) return fail(Code::kCorrupt, "sizes of bevies that cannot be read");
  std::vector<std::uint32_t> list(sizes->size());
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = (*sizes)[i];
  return parity::Layout::make(width, std::move(list));
}

bool is_compressed(const Attributes& attributes) { return attributes.contains(std::string(kDescriptionAttribute)); }

Result<Description> description_of(const Attributes& attributes, const std::string& path) {
  const auto found = attributes.find(std::string(kDescriptionAttribute));
  if (found == attributes.end())
    return fail(Code::kInvalid, path + " is not compressed: pif decompress takes what pif compress has made");
  std::uint32_t version = 0;
  auto front = std::as_bytes(std::span(found->second));
  if (tool::take_member(front, version) && version > kVersion)
    return fail(Code::kUnsupported, fmt::format("{} was compressed by a later release (version {})", path, version));
  const auto description = tool::unpack_head<Description>(found->second);
  if (!description || !description->format() || !description->layout())
    return fail(Code::kCorrupt, path + ": its attribute 'compression' cannot be read");
  return *description;
}

Task task_of(const Attributes& attributes) {
  Task task{attributes.at(std::string(kDescriptionAttribute)), {}};
  const auto dictionary = attributes.find(std::string(kDictionaryAttribute));
  if (dictionary != attributes.end()) task.dictionary = dictionary->second;
  return task;
}

std::uint32_t place_of(std::span<const std::byte> stored) {
  const bool has_place = stored.size() > kCheckBytes && stored.size() < kRecordLengthMax;
  return has_place ? std::to_integer<std::uint32_t>(stored[kCheckBytes]) : 0;
}

}  // namespace pif::compress
