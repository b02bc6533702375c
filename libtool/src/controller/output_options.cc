#include "pif/tool/output_options.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/base/inheriting.h"
#include "pif/base/limits.h"

namespace pif::tool {
namespace {

Result<std::vector<std::uint32_t>> node_ids(Client& client, const std::vector<std::string>& names) {
  PIF_TRY_VALUE(const SystemStatus status, client.status());
  std::vector<std::uint32_t> ids;
  for (const auto& name : names) {
    const auto found = std::find_if(status.nodes.begin(), status.nodes.end(), [&](const Node& node) {
      return node.name == name || std::to_string(node.id) == name;
    });
    if (found == status.nodes.end()) {
      return fail(Code::kInvalid, fmt::format("there is no LFS '{}': pif node list shows which there are", name));
    }
    if (std::find(ids.begin(), ids.end(), found->id) != ids.end()) {
      return fail(Code::kInvalid, fmt::format("LFS '{}' is named twice", name));
    }
    ids.push_back(found->id);
  }
  return ids;
}

bool is_uniform(std::span<const std::uint32_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&](std::uint32_t size) { return size == sizes.front(); });
}

std::uint32_t size_of_bevies(const CreateOptions& options) { return options.bevy == kNoBevies ? 0 : options.bevy; }

// Bevies as given, else the source's: all of them on as many LFSs, their size on another number of them; none if it has
// none.
Status choose_bevies(const std::string& path, const OutputOptions& wanted, File& source, std::uint32_t width,
                     CreateOptions& options) {
  const auto sizes = source.layout().bevies();
  if (wanted.bevy || sizes.empty()) {
    options.bevy = wanted.bevy.value_or(0) == 0 ? kNoBevies : *wanted.bevy;
  } else if (width == source.layout().width()) {
    options.bevies.assign(sizes.begin(), sizes.end());
  } else if (is_uniform(sizes)) {
    options.bevy = sizes.front();
  } else {
    return fail(Code::kInvalid,
                fmt::format("{} has bevies of different sizes, which do not fit {} LFSs: give --bevy B, or "
                            "--bevy 0 for no parity",
                            path, width));
  }
  const std::uint64_t pair = 2 * std::uint64_t{size_of_bevies(options)};  // of any number that was asked for
  if (pair > 0 && width % pair != 0) {
    return fail(Code::kInvalid,
                fmt::format("bevies of {} need a multiple of {} LFSs, not {}: give another --bevy, or --bevy 0 "
                            "for no parity",
                            options.bevy, pair, width));
  }
  return {};
}

Status choose_layout(Controller& controller, const std::string& path, const OutputOptions& wanted, File& source,
                     CreateOptions& options) {
  std::vector<std::uint32_t> present(source.nodes().begin(), source.nodes().end());
  if (!wanted.nodes.empty()) {
    PIF_TRY_VALUE(options.nodes, node_ids(controller.client(), wanted.nodes));
  } else if (!wanted.width || *wanted.width == present.size()) {
    options.nodes = std::move(present);
    options.same_host_ok = options.same_host_ok || !wanted.bevy;  // as its source is
  } else {
    options.width = *wanted.width;
  }
  const std::size_t width = options.nodes.empty() ? options.width : options.nodes.size();
  return choose_bevies(path, wanted, source, static_cast<std::uint32_t>(width), options);
}

}  // namespace

std::uint32_t width_of(const CreateOptions& options) {
  return std::max<std::uint32_t>(
      options.nodes.empty() ? options.width : static_cast<std::uint32_t>(options.nodes.size()), 1);
}

void add_output_options(CLI::App& app, OutputOptions& wanted) {
  auto* const width = app.add_option("--width", wanted.width, "number of LFSs of DST")->type_name("P");
  width->check(CLI::Range(1u, kWidthMax))->transform(whole_number);
  app.add_option("--nodes", wanted.nodes, "LFSs of DST in order, by name or number")
      ->type_name("LIST")
      ->delimiter(',')
      ->excludes(width)
      ->allow_extra_args(false);  // or it would take SRC and DST too
  app.add_option("--bevy", wanted.bevy, "bevy size of DST; 0: no parity")
      ->check(CLI::Range(0u, kWidthMax / 2))
      ->transform(whole_number)
      ->type_name("B");
  app.add_flag("--same-host-ok", wanted.same_host_ok, "companion bevies of DST may be on one machine");
  app.add_flag("--no-clobber", wanted.no_clobber, "fail if DST is there");
}

Result<CreateOptions> options_of_output(Controller& controller, std::size_t input, const std::string& source,
                                        const OutputOptions& wanted) {
  File& file = controller.input(input);
  PIF_TRY_VALUE(const Entry entry, controller.client().stat(source));
  CreateOptions options;
  options.format = file.format();
  options.mode = entry.mode & 0777;  // what is made gives nobody its owner's rights
  options.attributes = file.attributes();
  options.exclusive = wanted.no_clobber;
  options.inherits_layout = false;  // what is not given is as its source's
  options.same_host_ok = wanted.same_host_ok;
  PIF_TRY(choose_layout(controller, source, wanted, file, options));
  return options;
}

Result<CreateOptions> options_of_new_output(Controller& controller, const Format& format, const OutputOptions& wanted) {
  CreateOptions options;
  options.format = format;
  options.exclusive = wanted.no_clobber;
  options.same_host_ok = wanted.same_host_ok;
  options.width = wanted.width.value_or(0);
  if (wanted.bevy) options.bevy = *wanted.bevy == 0 ? kNoBevies : *wanted.bevy;
  if (wanted.nodes.empty()) return options;
  PIF_TRY_VALUE(options.nodes, node_ids(controller.client(), wanted.nodes));
  return options;
}

bool keeps_layout(const File& source, const CreateOptions& options) {
  const auto nodes = source.nodes();
  const auto sizes = source.layout().bevies();
  const bool keeps_bevies = options.bevies.empty()
                                ? is_uniform(sizes) && size_of_bevies(options) == (sizes.empty() ? 0 : sizes.front())
                                : std::equal(sizes.begin(), sizes.end(), options.bevies.begin(), options.bevies.end());
  return keeps_bevies && std::equal(nodes.begin(), nodes.end(), options.nodes.begin(), options.nodes.end());
}

}  // namespace pif::tool
