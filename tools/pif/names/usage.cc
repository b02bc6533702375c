// du: what files hold, and what they take on the disks of their LFSs.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "command/node_states.h"
#include "command/program.h"
#include "names/entries.h"
#include "names/operand_paths.h"
#include "pif/base/print.h"
#include "pif/client/session.h"
#include "text/expand.h"
#include "text/text.h"

namespace pif::cli {
namespace {

constexpr std::size_t kFilesAtOnce = 1000;  // that LFSs are asked about

struct UsageOptions {
  std::vector<std::string> paths = {"/"};
  bool all = false;
  bool total = false;
  bool exact = false;
};

struct Usage {
  std::uint64_t bytes = 0, records = 0, files = 0, folders = 0;
  std::uint64_t stored = 0;      // on all disks, parity too
  std::uint64_t parity = 0;      // of it
  std::uint64_t unmeasured = 0;  // files that have a part on an LFS that does not answer

  void add(const Entry& entry) {
    if (entry.kind == EntryKind::kFolder) {
      ++folders;
      return;
    }
    ++files;
    bytes += entry.file_length.bytes;
    records += entry.file_length.records;
  }
};

// Asks LFSs what files take there, many at once.
class DiskUsage {
 public:
  explicit DiskUsage(client::Session& session) : session_(session) {}

  Status begin() {
    PIF_TRY_VALUE(const proto::NodesReply reply, session_.call(proto::Nodes()));
    for (const proto::NodeInfo& node : reply.nodes()) nodes_[node.id()] = node;
    return {};
  }
  // The file counts in all of `sums`, which live until measure().
  void add(const Entry& file, std::vector<Usage*> sums) {
    for (const std::uint32_t node : file.nodes) asked_[node].push_back(files_.size());
    files_.push_back({file.id, std::move(sums)});
  }
  bool is_full() const { return files_.size() >= kFilesAtOnce; }
  // All that was added since the last time.
  void measure() {
    std::map<std::uint32_t, net::CallId> calls;
    for (const auto& [node, files] : asked_) {
      auto call = start(node, files);
      if (call) {
        calls[node] = *call;
      } else {
        miss(node, files);
      }
    }
    for (const auto& [node, call] : calls) take(node, session_.caller().wait(call));
    asked_.clear();
    files_.clear();
  }
  // Of those that did not answer.
  const std::set<std::string>& silent() const { return silent_; }

 private:
  struct Asked {
    std::uint64_t id = 0;
    std::vector<Usage*> sums;
    bool is_missed = false;
  };

  Result<net::CallId> start(std::uint32_t node, const std::vector<std::size_t>& files) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || found->second.state() != kNodeUp) return fail(Code::kUnavailable, "it is not up");
    proto::StoredBytes request;
    for (const std::size_t file : files) request.add_files(files_[file].id);
    return session_.start_node(found->second, net::packet_of(std::move(request)));
  }
  void take(std::uint32_t node, Result<net::Packet> answer) {
    const auto& files = asked_[node];
    const auto reply = net::reply_in<proto::StoredBytes>(std::move(answer));
    const auto count = static_cast<int>(files.size());
    if (!reply || reply->rows_size() != count || reply->parity_size() != count) return miss(node, files);
    for (int i = 0; i < count; ++i) {
      for (Usage* sum : files_[files[static_cast<std::size_t>(i)]].sums) {
        sum->stored += reply->rows(i) + reply->parity(i);
        sum->parity += reply->parity(i);
      }
    }
  }
  void miss(std::uint32_t node, const std::vector<std::size_t>& files) {
    const auto found = nodes_.find(node);
    silent_.insert(found == nodes_.end() ? fmt::format("node {}", node) : found->second.name());
    for (const std::size_t file : files) {
      if (std::exchange(files_[file].is_missed, true)) continue;
      for (Usage* sum : files_[file].sums) ++sum->unmeasured;
    }
  }

  client::Session& session_;
  std::map<std::uint32_t, proto::NodeInfo> nodes_;
  std::vector<Asked> files_;
  std::map<std::uint32_t, std::vector<std::size_t>> asked_;  // places in files_, by node
  std::set<std::string> silent_;
};

// One run of du. A line for each operand; with -a one for each file, in front of that which it is in the sum of.
class UsageReport {
 public:
  UsageReport(const Program& program, const UsageOptions& options, Client& client)
      : program_(program), options_(options), client_(client), disks_(client.session()), failures_(program) {}

  Status begin() { return disks_.begin(); }
  Status add(const std::string& path) {
    PIF_TRY_VALUE(const Entry top, client_.stat(path));
    Usage sum;
    count(top, path, sum, false);
    if (top.kind == EntryKind::kFolder) {
      PIF_TRY(walk(client_, path, failures_, [&](const std::string& found, const Entry& entry) -> Status {
        count(entry, found, sum, options_.all && entry.kind == EntryKind::kFile);
        return {};
      }));
    }
    disks_.measure();
    lines_.push_back({path, sum});
    return {};
  }
  Failures& failures() { return failures_; }

  Outcome end() {
    PIF_TRY(program_.common.json ? print_document() : print_table());
    return failures_.exit_code();
  }

 private:
  struct Line {
    std::string path;
    Usage usage;
  };

  void count(const Entry& entry, const std::string& path, Usage& sum, bool has_line) {
    std::vector<Usage*> sums = {&sum, &total_};
    if (has_line) sums.push_back(&lines_.emplace_back(Line{path, {}}).usage);
    for (Usage* one : sums) one->add(entry);
    if (entry.kind == EntryKind::kFile) disks_.add(entry, std::move(sums));
    if (disks_.is_full()) disks_.measure();
  }

  static Json json_of(const Usage& usage) {
    return {{"bytes", usage.bytes},          {"records", usage.records},     {"files", usage.files},
            {"folders", usage.folders},      {"stored_bytes", usage.stored}, {"parity_bytes", usage.parity},
            {"unmeasured", usage.unmeasured}};
  }
  Status print_document() {
    Json document = {{"usage", Json::array()}};
    for (const Line& line : lines_) {
      Json one = json_of(line.usage);
      one["path"] = line.path;
      document["usage"].push_back(std::move(one));
    }
    if (options_.total) document["total"] = json_of(total_);
    failures_.add_to(document);
    return print(document);
  }

  std::vector<std::string> row_of(const std::string& name, const Usage& usage) const {
    const auto bytes = [&](std::uint64_t count) { return options_.exact ? std::to_string(count) : human_bytes(count); };
    const double ratio =
        static_cast<double>(usage.stored) / static_cast<double>(std::max<std::uint64_t>(usage.bytes, 1));
    const bool has_ratio = usage.bytes > 0 && usage.unmeasured == 0;
    return {bytes(usage.bytes),
            (usage.unmeasured > 0 ? ">" : "") + bytes(usage.stored),
            bytes(usage.parity),
            has_ratio ? fmt::format("{:.2f}", ratio) : "-",
            std::to_string(usage.records),
            std::to_string(usage.files),
            std::to_string(usage.folders),
            name};
  }
  Status print_table() {
    std::vector<std::vector<std::string>> rows = {
        {"data", "stored", "parity", "ratio", "records", "files", "folders", "path"}};
    for (const Line& line : lines_) rows.push_back(row_of(shown(line.path), line.usage));
    if (options_.total) rows.push_back(row_of("total", total_));
    PIF_TRY(print(table(rows, {0, 1, 2, 3, 4, 5, 6})));
    if (total_.unmeasured > 0 && !program_.common.quiet)
      print_error(fmt::format("pif: {} files have parts on LFSs that do not answer; stored leaves them out: {}\n",
                              total_.unmeasured, fmt::join(disks_.silent(), ", ")));
    return {};
  }

  const Program& program_;
  const UsageOptions& options_;
  Client& client_;
  DiskUsage disks_;
  Failures failures_;
  std::deque<Line> lines_;  // a line stays where it is until its file is measured
  Usage total_;
};

Outcome disk_usage(const Program& program, const UsageOptions& options) {
  PIF_TRY_VALUE(auto paths, parse_paths(options.paths));
  PIF_TRY_VALUE(Client client, program.connect());
  PIF_TRY(expand(client, paths));
  UsageReport report(program, options, client);
  PIF_TRY(report.begin());
  for (const auto& path : paths) {
    const Status added = report.add(path);
    if (added) continue;
    const Error error = at(path, added.error());
    if (paths.size() == 1 || ends_all(error)) return fail(error);
    report.failures().add(error);
  }
  return report.end();
}

}  // namespace

void add_usage_command(CLI::App& app, Program& program) {
  auto options = std::make_shared<UsageOptions>();
  CLI::App* du = add_command(app, program, "du", "Sum up what files hold, and take on disks with their parity",
                             "  pif du\n  pif du -c /data /results           with a line for both together\n"
                             "  pif du -a /data                    each file\n"
                             "  pif du --json / | jq '.usage[0].stored_bytes'");
  du->add_option("PATH", options->paths, "Files or folders (default: /)");
  du->add_flag("-a,--all", options->all, "A line for each file, too");
  du->add_flag("-c,--total", options->total, "A last line with the sum of all PATHs");
  auto* human = du->add_flag_callback(
      "-h,--human-readable", [] {}, "Sizes in KiB, MiB and so on: so they are, unless bytes are asked for");
  du->add_flag("-b,--bytes", options->exact, "Exact bytes")->excludes(human);
  on_run(du, program, options, disk_usage);
}

}  // namespace pif::cli
