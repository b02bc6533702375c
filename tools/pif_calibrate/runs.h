// The tools themselves, run on files that are made for that: what their reports say they took.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/client/client.h"

namespace pif::calibrate {

// One run of a tool: seconds of its phases and of parts of them, and its counts.
struct ToolRun {
  std::map<std::string, double> seconds, parts, counts;

  double phase(const std::string& name) const;  // 0: it had none
  double part(const std::string& name) const;
  double count(const std::string& name) const;
  double parts_together() const;
};
// kCorrupt: it is no tool's report.
[[nodiscard]] Result<ToolRun> parse_report(const std::string& json);
// The median of each value over several runs of the same.
ToolRun median_of(const std::vector<ToolRun>& runs);

// A folder of its own in the file system, for files that are gone when it ends.
class Workspace {
 public:
  // client outlives it. where: the file system's folder on this host.
  [[nodiscard]] static Result<Workspace> make(Client& client, std::string where);
  Workspace(Workspace&& other) noexcept;
  Workspace& operator=(Workspace&&) = delete;
  ~Workspace();

  // A file of so many records of random bytes, on all LFSs.
  [[nodiscard]] Status put(const std::string& name, std::uint64_t records, std::uint32_t length);
  // The tool with these options, from one file of the workspace to a new one, some times.
  [[nodiscard]] Result<ToolRun> run(const std::string& tool, std::vector<std::string> options, const std::string& name);
  // LFSs of that file, by name, in its order.
  [[nodiscard]] Result<std::vector<std::string>> lfss(const std::string& name);

 private:
  Workspace(Client& client, std::string where) : client_(&client), where_(std::move(where)) {}

  Client* client_;
  std::string where_;
  std::vector<double> taken_;  // seconds, by run
};

}  // namespace pif::calibrate
