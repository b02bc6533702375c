// What the PIF Server and its checker ask for: settling files, listing and checking components.
#pragma once

#include "core.h"

namespace pif::lfs {

class Managing {
 public:
  explicit Managing(Core& core) : core_(core) {}

  void settle(const Request& request);
  void check_component(const Request& request);
  [[nodiscard]] Result<net::Packet> list_components(const Request& request);

  // Takes a component away, in the catalogue first, then its files; done(kOk) also if there is none. for_good: see
  // Components::forget.
  void remove(FileId file, bool for_good, std::function<void(const Status&)> done);

 private:
  struct Check;
  void run_check(std::shared_ptr<Check> check);
  void finish_check(std::shared_ptr<Check> check);
  void remove_files(FileId file);

  Core& core_;
};

}  // namespace pif::lfs
