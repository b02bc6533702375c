// The requests of the PIF Server and its checker: settling files, listing and checking components.
#pragma once

#include "context/lfs_context.h"
#include "store/aside.h"

namespace pif::lfs {

class Managing {
 public:
  explicit Managing(LfsContext& context);

  [[nodiscard]] Result<net::Packet> settle(const Request& request, const proto::Settle& asked);
  [[nodiscard]] Result<net::Packet> check_component(const Request& request, const proto::CheckComponent& asked);
  [[nodiscard]] Result<net::Packet> list_components(const Request& request, const proto::ListComponents& asked);

  // Each is called by a fiber.
  // Takes a component away, in the catalogue first, then its files; no error if there is none. for_good: see
  // Components::forget.
  [[nodiscard]] Status remove(FileId file, bool for_good);
  // Takes it out of the catalogue for a while: nobody who could know it has said that its file is gone.
  [[nodiscard]] Status quarantine(FileId file);
  // No file's, as far as the server knows: removed if it must have known it, else into quarantine.
  [[nodiscard]] Status unknown(FileId file);
  // remove() on a fiber of its own; what fails is tried again when the file is restored again.
  void remove_soon(FileId file) { context_.fibers.start<&Managing::try_to_remove>(*this, file); }
  Aside& aside() { return aside_; }
  // The PIF Server is asked about all that this start and earlier ones put aside.
  [[nodiscard]] Status load_aside();
  // The PIF Server says what became of a file (FileStates); nothing of it is in the catalogue.
  void learn_aside(FileId file, std::uint32_t state);

 private:
  // The findings of one look at the files. Overwrites and appends go on meanwhile.
  struct Check {
    std::vector<std::string> damages;
    std::uint64_t bytes = 0;
    bool is_firm = false;  // nothing was changed meanwhile
  };
  [[nodiscard]] Check look(const Component& component, bool sums);
  [[nodiscard]] Status check_word(const proto::Settle& asked);
  [[nodiscard]] Status commit(FileId file);
  [[nodiscard]] Status restore(FileId file);
  [[nodiscard]] Status end_quarantine(FileId file);
  [[nodiscard]] Result<net::Packet> list_quarantine(const Request& request);
  void try_to_remove(FileId file) { (void)remove(file, false); }
  [[nodiscard]] Status remove_for_good(FileId file) { return remove(file, true); }
  [[nodiscard]] bool keeps_any() const {
    return context_.components.quarantined_count() > 0 || !aside_.copies().empty();
  }
  // On a fiber of its own: removes what has been in quarantine, or aside, for long enough.
  void serve();
  void end_old_quarantine(std::int64_t wall, bool is_short);
  void remove_old_aside(std::int64_t wall, bool is_short);

  LfsContext& context_;
  Aside aside_;
  Time next_look_{};  // into the quarantine, and at what is aside
};

}  // namespace pif::lfs
