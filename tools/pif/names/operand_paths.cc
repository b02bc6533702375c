#include "names/operand_paths.h"

#include <fmt/format.h>

#include "names/entries.h"
#include "pif/base/assert.h"
#include "pif/base/typed_path.h"
#include "text/expand.h"
#include "text/text.h"

namespace pif::cli {

Result<std::vector<std::string>> parse_paths(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) {
    PIF_TRY_VALUE(out.emplace_back(), parse_path(text));
  }
  return out;
}

Result<SourcesAndTarget> SourcesAndTarget::parse(const std::vector<std::string>& texts) {
  PIF_ASSERT(texts.size() >= 2, texts.size());
  SourcesAndTarget out;
  PIF_TRY_VALUE(out.sources, parse_paths(texts));
  out.target = std::move(out.sources.back());
  out.sources.pop_back();
  return out;
}

Status SourcesAndTarget::look_up(Client& client, bool must_be_folder) {
  PIF_TRY(expand(client, sources));
  PIF_TRY_VALUE(into, is_folder(client, target));
  if (!into && (must_be_folder || sources.size() > 1))
    return fail(Code::kNotDirectory, fmt::format("{0} is no folder; make it with: pif mkdir -p {0}", target));
  return {};
}

std::string SourcesAndTarget::place_of(const std::string& source) const {
  return into ? join_path(target, base_name(source)) : target;
}

}  // namespace pif::cli
