// fsck: whether directory and components agree, and every stored byte passes its check.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "command/program.h"
#include "pif/client/session.h"
#include "pif/wire/convert.h"
#include "repair/examine.h"
#include "repair/inventory.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::size_t kUnprotectedMax = 20;  // of their paths shown; --json has all
constexpr int kLooks = 2;                    // what is still wrong at the last of so many looks was no passing state

struct FsckOptions {
  bool repair = false;
  bool no_sums = false;
};

struct Totals {
  std::uint64_t files = 0, components = 0, pending = 0, doomed = 0, bytes_checked = 0, repaired = 0;
};

class Fsck {
 public:
  Fsck(const Program& program, const FsckOptions& options, Inventory inventory)
      : program_(program), options_(options), inventory_(std::move(inventory)) {}

  Outcome run() {
    PIF_TRY(inventory_.open());
    PIF_TRY(compare());
    PIF_TRY(look_into_quarantine());
    if (!options_.no_sums) PIF_TRY(check_sums());
    if (options_.repair) PIF_TRY(repair());
    PIF_TRY(program_.common.json ? print(document()) : print(text()));
    return damages() == 0 ? ExitCode::kDone : ExitCode::kNegative;
  }

 private:
  // Everything once, then what looks wrong again one by one: files come and go meanwhile.
  Status compare() {
    PIF_TRY_VALUE(components_, inventory_.all_components());
    PIF_TRY_VALUE(files_, inventory_.all_files());
    std::set<std::uint64_t> ids;
    for (const auto& [id, held] : components_) ids.insert(id);
    for (const auto& [id, file] : files_) ids.insert(id);
    for (const std::uint64_t id : ids) PIF_TRY(look_at(id));
    return {};
  }

  Status look_at(std::uint64_t id) {
    const auto file = files_.find(id);
    const auto held = components_.find(id);
    auto findings =
        examine(id, file == files_.end() ? nullptr : &file->second, held == components_.end() ? Held{} : held->second);
    for (int look = 0; look < kLooks && !findings.empty(); ++look) {
      PIF_TRY_VALUE(const Held now, inventory_.components_of(id));
      PIF_TRY_VALUE(const auto record, inventory_.file(id));
      findings = examine(id, record ? &*record : nullptr, now);
    }
    findings_.insert(findings_.end(), findings.begin(), findings.end());
    totals_.components += held == components_.end() ? 0 : held->second.size();
    if (file == files_.end()) return {};
    const bool is_committed = file->second.state() == kFileCommitted;
    if (is_committed && wire::is_older(file->second.layout())) unprotected_.push_back(file->second.path());
    totals_.files += is_committed ? 1 : 0;
    totals_.pending += file->second.state() == kFilePending ? 1 : 0;
    totals_.doomed += file->second.state() == kFileDoomed ? 1 : 0;
    return {};
  }

  Status look_into_quarantine() {
    PIF_TRY_VALUE(const auto aside, inventory_.quarantine());
    for (const auto& one : aside) {
      const std::string what =
          one.is_known()
              ? fmt::format(
                    "{} rows, put aside on {}: the server did not know the file; pif server accept-old "
                    "brings it back",
                    one.state.rows(), iso_second(one.since))
              : fmt::format("files that the LFS's catalogue does not know, put aside on {} in aside/{} of its root",
                            iso_second(one.since), one.since);
      findings_.push_back({Finding::Kind::kQuarantined, one.state.shape().file(), one.node, "", what});
    }
    return {};
  }

  Status check_sums() {
    std::map<std::uint32_t, std::vector<std::uint64_t>> files_by_node;
    for (const auto& [id, held] : components_) {
      const auto file = files_.find(id);
      if (file == files_.end() || file->second.state() != kFileCommitted) continue;
      for (const auto& [node, state] : held) files_by_node[node].push_back(id);
    }
    PIF_TRY_VALUE(auto check, inventory_.check_sums(files_by_node));
    totals_.bytes_checked = check.bytes;
    for (auto& finding : check.findings) {
      finding.path = files_[finding.file].path();
      findings_.push_back(std::move(finding));
    }
    return {};
  }

  // Only what no file owns: everything else may be somebody's only copy.
  Status repair() {
    std::vector<Finding> left;
    for (auto& finding : findings_) {
      const bool ownerless = finding.path.empty() && finding.node != 0 &&
                             (finding.kind == Finding::Kind::kOrphan || finding.kind == Finding::Kind::kLeftover);
      if (!ownerless) {
        left.push_back(std::move(finding));
        continue;
      }
      PIF_TRY(inventory_.remove_component(finding.node, finding.file));
      ++totals_.repaired;
    }
    findings_ = std::move(left);
    return {};
  }

  std::size_t damages() const {
    std::size_t n = 0;
    for (const auto& finding : findings_) n += is_damage(finding) ? 1 : 0;
    return n;
  }

  Json document() const {
    Json findings = Json::array();
    for (const auto& finding : findings_) {
      findings.push_back({{"kind", kind_name(finding.kind)},
                          {"damage", is_damage(finding)},
                          {"file", finding.file},
                          {"path", finding.path},
                          {"node", finding.node == 0 ? "" : inventory_.name_of(finding.node)},
                          {"text", finding.text}});
    }
    return {{"clean", damages() == 0},     {"files", totals_.files},       {"components", totals_.components},
            {"pending", totals_.pending},  {"doomed", totals_.doomed},     {"leftovers", findings_.size() - damages()},
            {"damages", damages()},        {"repaired", totals_.repaired}, {"bytes_checked", totals_.bytes_checked},
            {"unprotected", unprotected_}, {"findings", findings}};
  }

  std::string text() const {
    std::string out;
    for (const auto& finding : findings_) {
      const std::string name = finding.path.empty() ? fmt::format("file {}", finding.file) : finding.path;
      const std::string node = finding.node == 0 ? "" : " on " + inventory_.name_of(finding.node);
      out += fmt::format("{}: {}{}: {}\n", kind_name(finding.kind), name, node, finding.text);
    }
    if (program_.common.quiet) return out;
    for (std::size_t i = 0; i < std::min(unprotected_.size(), kUnprotectedMax); ++i)
      out += fmt::format("unprotected: {}: made before parity was kept; pif protect makes it anew\n",
                         shown(unprotected_[i]));
    if (unprotected_.size() > kUnprotectedMax)
      out += fmt::format("unprotected: {} more files\n", unprotected_.size() - kUnprotectedMax);
    out += fmt::format("{} files in {} components, {} checked; {} being made, {} being removed, {} leftovers",
                       totals_.files, totals_.components, human_bytes(totals_.bytes_checked), totals_.pending,
                       totals_.doomed, findings_.size() - damages());
    if (!unprotected_.empty()) out += fmt::format("; {} files unprotected", unprotected_.size());
    if (totals_.repaired > 0) out += fmt::format("; {} components without owner put aside", totals_.repaired);
    return out + (damages() == 0 ? ": clean\n" : fmt::format(": {} damages\n", damages()));
  }

  const Program& program_;
  const FsckOptions& options_;
  Inventory inventory_;
  std::map<std::uint64_t, Held> components_;
  std::map<std::uint64_t, FileRecord> files_;
  std::vector<Finding> findings_;
  std::vector<std::string> unprotected_;  // paths
  Totals totals_;
};

Outcome fsck(const Program& program, const FsckOptions& options) {
  auto client = program.connect();
  if (!client) {
    Error error = client.error();
    if (error.code == Code::kUnavailable) error.text += "; without daemons, check each LFS with: pif-lfs check ROOT";
    return fail(std::move(error));
  }
  return Fsck(program, options, Inventory(client::session_of(*client))).run();
}

}  // namespace

void add_fsck_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<FsckOptions>();
  CLI::App* command = add_command(
      app, program, "fsck", "Check that directory and components agree, and read every byte; exit 1 if there is damage",
      "  pif fsck\n  pif fsck --repair\n  pif fsck --json --no-sums | jq .findings");
  command->add_flag("--repair", options->repair,
                    "Put components that no file owns aside, for a week; nothing else is touched");
  command->add_flag("--no-sums", options->no_sums, "Compare directory and components only; do not read the data");
  on_run(command, program, options, fsck);
}

}  // namespace pif::cli
