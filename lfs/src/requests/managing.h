// What the PIF Server and its checker ask for: settling files, listing and checking components.
#pragma once

#include "context/lfs_context.h"
#include "store/aside.h"

namespace pif::lfs {

class Managing {
 public:
  explicit Managing(LfsContext& context);

  void settle(const Request& request, const proto::Settle& asked);
  void check_component(const Request& request, const proto::CheckComponent& asked);
  [[nodiscard]] Result<net::Packet> list_components(const Request& request, const proto::ListComponents& asked);

  // Takes a component away, in the catalogue first, then its files; done(kOk) also if there is none. for_good: see
  // Components::forget.
  void remove(FileId file, bool for_good, std::function<void(const Status&)> done);
  // Takes it out of the catalogue for a while: nobody who could know it has said that its file is gone.
  void quarantine(FileId file, std::function<void(const Status&)> done);
  // No file's, as far as the server knows: removed if it must have known it, else into quarantine.
  void unknown(FileId file, std::function<void(const Status&)> done);
  Aside& aside() { return aside_; }
  // The PIF Server is asked about all that this start and earlier ones put aside.
  [[nodiscard]] Status load_aside();
  // The PIF Server says what became of a file (FileStates); nothing of it is in the catalogue.
  void learn_aside(FileId file, std::uint32_t state);
  // Removes what has been in quarantine, or aside, for long enough. Once per turn.
  void tick();

 private:
  struct Check;
  void run_check(std::shared_ptr<Check> check);
  void finish_check(std::shared_ptr<Check> check);
  [[nodiscard]] Status check_word(const proto::Settle& asked);
  void restore(FileId file, std::function<void(const Status&)> done);
  void end_old_quarantine(std::int64_t wall, bool is_short);
  void remove_old_aside(std::int64_t wall, bool is_short);
  void end_quarantine(FileId file, std::function<void(const Status&)> done);
  [[nodiscard]] Result<net::Packet> list_quarantine(const Request& request);

  LfsContext& context_;
  Aside aside_;
  Time next_look_{};             // into the quarantine, and at what is aside
  unsigned aside_removals_ = 0;  // under way
};

}  // namespace pif::lfs
