#include "codec/compression.h"

#include <array>

namespace pif::cli {
namespace {

struct KindName {
  Compression kind;
  std::string_view name, suffix;
};
constexpr std::array<KindName, 3> kKindNames = {
    {{Compression::kGzip, "gzip", ".gz"}, {Compression::kZstd, "zstd", ".zst"}, {Compression::kXz, "xz", ".xz"}}};

}  // namespace

Compression compression_called(std::string_view name) {
  for (const KindName& one : kKindNames)
    if (one.name == name) return one.kind;
  return Compression::kNone;
}

Compression compression_of_name(std::string_view name) {
  for (const KindName& one : kKindNames)
    if (name.ends_with(one.suffix)) return one.kind;
  return Compression::kNone;
}

std::string_view suffix_of(Compression kind) {
  for (const KindName& one : kKindNames)
    if (one.kind == kind) return one.suffix;
  return "";
}

std::string without_suffix(const std::string& name, Compression kind) {
  const std::string_view suffix = suffix_of(kind);
  const bool has_it = !suffix.empty() && name.ends_with(suffix) && name.size() > suffix.size() &&
                      name[name.size() - suffix.size() - 1] != '/';
  return has_it ? name.substr(0, name.size() - suffix.size()) : name;
}

}  // namespace pif::cli
