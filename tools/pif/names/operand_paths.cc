#include "names/operand_paths.h"

#include <set>

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
    auto path = parse_path(text);
    if (!path && !text.starts_with('/') && !text.starts_with("pif:/")) return fail(path.error());
    out.push_back(path ? std::move(*path) : text);
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

Status SourcesAndTarget::look_up(Client& client) {
  PIF_TRY(expand(client, sources));
  PIF_TRY_VALUE(into, is_folder(client, target));
  if (!into && sources.size() > 1)
    return fail(Code::kNotDirectory, fmt::format("{0} is no folder; make it with: pif mkdir -p {0}", target));
  return {};
}

std::string SourcesAndTarget::place_of(const std::string& source) const {
  return into ? join_path(target, base_name(source)) : target;
}

Status Destinations::check(const std::string& source, const std::string& to) const {
  const auto found = sources_.find(to);
  if (found == sources_.end()) return {};
  return fail(Code::kExists,
              fmt::format("{} stays where it is: {} is {} already, by this same command", source, to, found->second));
}

Status Destinations::take(const std::string& source, const std::string& to) {
  PIF_TRY(check(source, to));
  note(source, to);
  return {};
}

std::vector<std::string> without_repeats(std::vector<std::string> operands) {
  std::set<std::string> seen;
  std::erase_if(operands, [&](const std::string& operand) { return !seen.insert(operand).second; });
  return operands;
}

}  // namespace pif::cli
