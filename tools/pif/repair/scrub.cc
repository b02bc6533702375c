// scrub: LFSs look at all that they have of files with parity, and repair it. They do that by themselves; the command
// starts it and looks on.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "command/options.h"
#include "command/program.h"
#include "pif/base/print.h"
#include "pif/wire/values.h"
#include "repair/inventory.h"
#include "repair/watch.h"
#include "text/text.h"

namespace pif::cli {
namespace {

struct ScrubOptions {
  std::vector<std::string> nodes;
  std::uint64_t rate = 0;
  bool only_look = false;
};

// Not of a damage: something was not compared.
bool is_note(const proto::ScrubStatusReply::Damage& one) {
  return one.file() == 0 && one.text().find("not wholly compared") != std::string::npos;
}

// One pass of each of these LFSs, looked on until all have ended.
class ScrubWatch {
 public:
  ScrubWatch(const Program& program, const ScrubOptions& options, Inventory& inventory)
      : program_(program), options_(options), inventory_(inventory) {}

  void add(const proto::NodeInfo& node) { passes_.push_back({node, {}, {}, false}); }
  Outcome run() {
    Watch watch(program_);
    for (Pass& pass : passes_) ask(pass);
    PIF_TRY(watch.until([&] { return look_at_all(watch); }, "the LFSs go on by themselves; pif scrub shows them"));
    PIF_TRY(program_.common.json ? print(document()) : report());
    return exit_code();
  }

 private:
  struct Pass {
    proto::NodeInfo node;
    proto::ScrubStatusReply now;
    std::optional<Error> error;
    bool is_over = false;

    std::uint64_t unrepaired() const { return now.found() - std::min(now.found(), now.repaired()); }
  };

  void ask(Pass& pass) {
    if (pass.node.state() != kNodeUp) {
      pass.error = Error{Code::kUnavailable, "it is not up: start it with pif up", pass.node.name()};
      pass.is_over = true;
      return;
    }
    if (const Status asked = inventory_.scrub(pass.node, options_.rate, options_.only_look); !asked) {
      pass.error = asked.error();
      pass.is_over = true;
    }
  }

  // Whether all are over.
  bool look_at_all(Watch& watch) {
    for (Pass& pass : passes_)
      if (!pass.is_over) look(pass);
    if (std::all_of(passes_.begin(), passes_.end(), [](const Pass& pass) { return pass.is_over; })) return true;
    show(watch);
    return false;
  }

  // Of an LFS that was started again meanwhile nothing is known: it begins again.
  void look(Pass& pass) {
    auto now = inventory_.scrub_status(pass.node);
    if (!now) {
      pass.error = now.error();
      pass.is_over = true;
      return;
    }
    pass.now = std::move(*now);
    if (pass.now.is_running()) return;
    if (pass.now.began() == 0) return ask(pass);
    pass.is_over = true;
  }

  void show(Watch& watch) const {
    std::uint64_t bytes = 0, total = 0;
    for (const Pass& pass : passes_) {
      bytes += pass.now.bytes();
      total += std::max(pass.now.bytes(), pass.now.bytes_total());
    }
    if (total > 0) watch.show("scrub", bytes, total);
  }

  // Whether something is damaged still comes first: it is known, whoever else could not be asked.
  ExitCode exit_code() const {
    const auto has_error = [](const Pass& pass) { return pass.error.has_value(); };
    const auto is_hurt = [](const Pass& pass) { return pass.unrepaired() > 0; };
    if (std::any_of(passes_.begin(), passes_.end(), is_hurt)) return ExitCode::kNegative;
    if (std::any_of(passes_.begin(), passes_.end(), has_error)) return ExitCode::kFailed;
    const auto has_notes = [](const Pass& pass) {
      return std::any_of(pass.now.damages().begin(), pass.now.damages().end(), is_note);
    };
    return std::any_of(passes_.begin(), passes_.end(), has_notes) ? ExitCode::kNegative : ExitCode::kDone;
  }

  Json document() const {
    Json nodes = Json::array();
    for (const Pass& pass : passes_) {
      Json damages = Json::array(), notes = Json::array();
      for (const auto& one : pass.now.damages()) {
        if (is_note(one))
          notes.push_back(one.text());
        else
          damages.push_back({{"file", one.file()}, {"text", one.text()}, {"repaired", one.is_repaired()}});
      }
      nodes.push_back({{"node", pass.node.name()},
                       {"error", pass.error ? pass.error->text : ""},
                       {"files", pass.now.files()},
                       {"bytes", pass.now.bytes()},
                       {"seconds", seconds_of(pass.now.elapsed_ms())},
                       {"found", pass.now.found()},
                       {"repaired", pass.now.repaired()},
                       {"damages", damages},
                       {"not_compared", notes}});
    }
    return {{"nodes", nodes}};
  }

  Status report() const {
    std::string text;
    std::vector<std::vector<std::string>> rows = {{"node", "files", "looked at", "time", "found", "repaired", ""}};
    for (const Pass& pass : passes_) {
      for (const auto& one : pass.now.damages())
        text += fmt::format("{}: {}\n", pass.node.name(), one_line(one.text()));
      const auto listed = static_cast<std::uint64_t>(pass.now.damages_size());
      if (pass.now.found() > listed)
        text += fmt::format("{}: and {} more\n", pass.node.name(), pass.now.found() - listed);
      rows.push_back({pass.node.name(), std::to_string(pass.now.files()), human_bytes(pass.now.bytes()),
                      human_time(std::chrono::duration<double>(seconds_of(pass.now.elapsed_ms()))),
                      std::to_string(pass.now.found()), std::to_string(pass.now.repaired()),
                      pass.error ? one_line(pass.error->text) : ""});
    }
    if (!program_.common.quiet) text += table(rows, {1, 2, 3, 4, 5});
    return print(text);
  }

  const Program& program_;
  const ScrubOptions& options_;
  Inventory& inventory_;
  std::vector<Pass> passes_;
};

Outcome scrub(const Program& program, const ScrubOptions& options) {
  PIF_TRY_VALUE(Client client, program.connect());
  Inventory inventory(client::session_of(client));
  PIF_TRY(inventory.open(Inventory::Needs::kServer));
  ScrubWatch watch(program, options, inventory);
  for (const std::string& name : options.nodes) {
    PIF_TRY_VALUE(const proto::NodeInfo node, inventory.node_named(name));
    watch.add(node);
  }
  if (options.nodes.empty()) {
    for (const proto::NodeInfo& node : inventory.nodes()) watch.add(node);
  }
  return watch.run();
}

}  // namespace

void add_scrub_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<ScrubOptions>();
  CLI::App* command = add_command(
      app, program, "scrub", "Look at all bytes of files with parity, and repair them; exit 1 if not all is right then",
      "  pif scrub                        all LFSs\n"
      "  pif scrub --rate 50MiB lfs1      one of them, at most so much a second\n"
      "  pif scrub --only-look --json     repair nothing");
  command->add_option("NODE", options->nodes, "Names of LFSs, such as lfs1 (default: all)");
  add_rate_option(command, options->rate, "Each LFS reads at most");
  command->add_flag("--only-look", options->only_look, "Repair nothing");
  on_run(command, program, options, scrub);
}

}  // namespace pif::cli
