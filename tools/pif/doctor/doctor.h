// The findings of `pif doctor`, and its checks: each says what it looked at, whether that is as it should be, and what
// to do if not. A check that cannot look is a finding too, never an error.
#pragma once

#include <string>
#include <vector>

#include "command/program.h"
#include "hosts/remote_shell.h"
#include "pif/cluster/cluster.h"

namespace pif::cli {

struct Advice {
  enum class State { kOk, kWarning, kWrong };
  State state = State::kOk;
  std::string check;  // "keys"
  std::string text;   // what is so
  std::string todo;   // empty if it is ok
};

class Doctor {
 public:
  void ok(std::string check, std::string text) { add({Advice::State::kOk, std::move(check), std::move(text), {}}); }
  void warn(std::string check, std::string text, std::string todo) {
    add({Advice::State::kWarning, std::move(check), std::move(text), std::move(todo)});
  }
  void wrong(std::string check, std::string text, std::string todo) {
    add({Advice::State::kWrong, std::move(check), std::move(text), std::move(todo)});
  }
  const std::vector<Advice>& findings() const { return findings_; }
  std::size_t count(Advice::State state) const;

 private:
  void add(Advice advice) { findings_.push_back(std::move(advice)); }
  std::vector<Advice> findings_;
};

// ---- this machine ----
void check_programs(Doctor& doctor, const std::string& programs);  // folder of `pif`
void check_limits(Doctor& doctor);
void check_kernel(Doctor& doctor);
void check_mounts(Doctor& doctor);                            // of file systems, whose process died
void check_clock(Doctor& doctor, const std::string& folder);  // of the file system; empty: none

// ---- a file system's files ----
void check_keys(Doctor& doctor, const cluster::Cluster& cluster);
void check_roots(Doctor& doctor, const cluster::Cluster& cluster);  // whose they are, permissions, formats
void check_disks(Doctor& doctor, const cluster::Cluster& cluster);  // space, kind

// ---- its processes ----
// Those that run and can be reached are asked.
void check_daemons(Doctor& doctor, const cluster::Cluster& cluster, const std::string& programs);
void check_service(Doctor& doctor, const cluster::Cluster& cluster, const Program& program);
void check_clocks(Doctor& doctor, const SystemStatus& status);  // those of LFSs against the server's

// ---- other hosts ----
// Each of them is asked what it finds of itself.
void check_hosts(Doctor& doctor, const cluster::Cluster& cluster, const RemoteShell& shell);

}  // namespace pif::cli
