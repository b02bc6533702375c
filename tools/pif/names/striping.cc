#include "names/striping.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "names/entries.h"
#include "pif/base/decimal.h"
#include "pif/base/limits.h"
#include "text/text.h"

namespace pif::cli {
namespace {

// "lfs0,lfs2" or node ids.
Result<std::vector<std::uint32_t>> node_ids(Client& client, const std::string& list) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  std::vector<std::uint32_t> ids;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string name = list.substr(start, comma - start);
    start = comma + 1;
    const auto found = std::find_if(status.nodes.begin(), status.nodes.end(), [&](const Node& node) {
      return node.name == name || std::to_string(node.id) == name;
    });
    if (found == status.nodes.end())
      return fail(Code::kInvalid, fmt::format("--nodes: there is no node '{}' (pif node list shows them)", name));
    ids.push_back(found->id);
  }
  return ids;
}

void add_format_options(CLI::App* command, StripingOptions& options, const std::string& otherwise) {
  auto* length = command->add_option("--record-length", options.record_length, "Bytes of a record" + otherwise)
                     ->check(CLI::Range(1u, kRecordLengthMax))
                     ->transform(whole_number)
                     ->type_name("L");
  auto* lines = command->add_flag("--lines", options.lines, "Each text line is a record")->excludes(length);
  command->add_option("--delimited", options.delimited, "A record ends with this: a character, \\n, \\t, \\0 or 0xHH")
      ->excludes(length)
      ->excludes(lines)
      ->type_name("C");
}

void add_layout_options(CLI::App* command, StripingOptions& options, const std::string& otherwise) {
  auto* width = command->add_option("--width", options.width, "Number of LFSs" + otherwise)
                    ->check(CLI::Range(1u, kWidthMax))
                    ->transform(whole_number)
                    ->type_name("P");
  command->add_option("--nodes", options.nodes, "These LFSs, in this order: names or ids")
      ->excludes(width)
      ->check([](const std::string& list) { return list.empty() ? "names no LFS" : ""; })
      ->type_name("LIST");
  command
      ->add_option("--bevy", options.bevy,
                   "Parity over bevies of this size; needs a width that is a multiple of 2B; 0: no parity")
      ->check(CLI::Range(0u, kWidthMax / 2))
      ->transform(whole_number)
      ->type_name("B");
}

}  // namespace

void add_striping_options(CLI::App* command, StripingOptions& options, bool for_files_in) {
  add_format_options(command, options, for_files_in ? "" : " (default: as the folder has it, else 65536)");
  add_layout_options(command, options, for_files_in ? "" : " (default: as the folder has it, else all that are up)");
  if (!for_files_in) return;
  for (const char* name : {"--record-length", "--lines", "--delimited", "--width", "--nodes", "--bevy"})
    command->get_option(name)->group("Of files in the folder that do not say otherwise");
}

Result<std::optional<Format>> format_of(const StripingOptions& options) {
  std::optional<Format> format;
  if (options.lines) format = Format::lines();
  if (!options.delimited.empty()) {
    PIF_TRY_VALUE(const std::uint8_t delimiter, parse_delimiter(options.delimited));
    format = Format::delimited(delimiter);
  }
  if (options.record_length != 0) format = Format::fixed(options.record_length);
  if (format) PIF_TRY(format->validate());
  return format;
}

Result<Striping> striping_of(Client& client, const StripingOptions& options) {
  Striping striping;
  PIF_TRY_VALUE(striping.format, format_of(options));
  striping.width = options.width;
  if (!options.nodes.empty()) {
    PIF_TRY_VALUE(striping.nodes, node_ids(client, options.nodes));
  }
  striping.bevy = options.bevy;
  return striping;
}

Json json_of(const Striping& striping) {
  Json out;
  if (striping.format) out["format"] = json_of(*striping.format);
  if (striping.width != 0) out["width"] = striping.width;
  if (!striping.nodes.empty()) out["nodes"] = striping.nodes;
  if (striping.bevy) out["bevy"] = *striping.bevy;
  return out;
}

std::string striping_text(const Striping& striping) {
  std::vector<std::string> parts;
  if (striping.format) parts.push_back(format_text(*striping.format));
  if (!striping.nodes.empty())
    parts.push_back(fmt::format("width {} (nodes {})", striping.nodes.size(), fmt::join(striping.nodes, ",")));
  else if (striping.width != 0)
    parts.push_back(fmt::format("width {}", striping.width));
  if (striping.bevy) parts.push_back(*striping.bevy == 0 ? "no bevies" : fmt::format("bevies of {}", *striping.bevy));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace pif::cli
