// What goes wrong on one machine, and when: failing calls, and power that goes in the middle of one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pif/kv/store.h"

namespace pif::sim {

enum class Fault : std::uint8_t {
  kIoError,  // any call
  kNoSpace,  // calls that need space; a write has written its first half
  kShort,    // a read returns its first half; a write has written its first half and fails
};

// Asked before every call of a machine's disk and of its key-value store ("kv.read", "kv.write", "kv.get", "kv.put",
// "kv.scan", "kv.commit").
class Faults {
 public:
  // The power goes at the n-th call from now (0: the next one), or at the n-th that makes something durable ("sync",
  // "sync_folder", "kv.commit"): `cut` is called, and all calls fail until revive().
  void cut_power_at(std::uint64_t calls, bool only_durable, std::function<void()> cut);
  // From the n-th call on that it can happen to: that one, or (sticky) all of them until heal().
  // Of those that `which` says; empty: of all.
  using Which = std::function<bool(std::string_view call, std::string_view path)>;
  void fail_at(std::uint64_t calls, Fault fault, bool sticky, Which which = {});
  void stop_failing() { fail_at_ = UINT64_MAX; }
  void heal();                   // the same, and nothing has failed
  void kill() { dead_ = true; }  // whatever its process still tries has no effect
  void revive();
  bool is_dead() const { return dead_; }
  // Says of a read whether the disk has to be waited for. Without it, all is in memory.
  void set_cold(std::function<bool()> is_cold) { is_cold_ = std::move(is_cold); }

  Code ask(std::string_view call, std::string_view path);
  bool has_failed() const { return failed_; }  // since heal()
  const std::string& failed_call() const { return failed_call_; }

 private:
  bool cuts(std::string_view call);
  static Code code_of(Fault fault, std::string_view call);

  std::uint64_t cut_at_ = UINT64_MAX;  // calls that are left until then
  bool cut_only_durable_ = false;
  std::uint64_t fail_at_ = UINT64_MAX;
  std::uint64_t fail_count_ = 0;  // calls since fail_at() that it can happen to
  Fault fault_ = Fault::kIoError;
  bool sticky_ = false;
  Which which_;
  bool dead_ = false;
  bool failed_ = false;
  std::string failed_call_;
  std::function<void()> cut_;
  std::function<bool()> is_cold_;
};

// A store, named in its errors, whose calls may fail. A commit that fails has changed nothing; one at which the power
// goes may have been made.
std::unique_ptr<kv::Store> make_faulty_store(std::string name, std::unique_ptr<kv::Store> inner,
                                             std::shared_ptr<Faults> faults, std::function<bool()> commits_before_cut);

}  // namespace pif::sim
