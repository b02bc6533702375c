// Changes of the catalogue that share a transaction: everything that the requests of one turn of the loop ask for is
// committed at once (group commit), then they are answered.
#pragma once

#include <functional>
#include <vector>

#include "pif/daemon/fibers.h"
#include "pif/lfs/disk_health.h"
#include "store/catalogue.h"
#include "store/components.h"
#include "store/numbers.h"

namespace pif::lfs {

class CatalogueBatch {
 public:
  using Change = std::function<void(proto::ComponentState&)>;
  using Done = std::function<void(const Status&)>;  // durable now, or why not; may ask for further changes

  // clock: of the quarantine. health: is told of commits that fail; may be null.
  CatalogueBatch(Components& components, Numbers& numbers, Clock& clock, DiskHealth* health, daemon::Fibers& fibers)
      : components_(components), numbers_(numbers), clock_(clock), health_(health), fibers_(fibers) {}

  // Each waits until the change is durable, with all others of the turn; called by a fiber. Error: it is not.
  // kStaleFile: the component was removed meanwhile.
  [[nodiscard]] Status commit(const ComponentPtr& component, Change change);
  [[nodiscard]] Status commit_erase(const ComponentPtr& component);
  [[nodiscard]] Status commit_quarantine(const ComponentPtr& component);
  [[nodiscard]] Status commit_restore(const proto::ComponentState& state);
  [[nodiscard]] Status commit_end_quarantine(FileId file);
  [[nodiscard]] Status commit_view(const std::string& packed);
  [[nodiscard]] Status commit_scrub(const catalogue::ScrubRecord& record);
  [[nodiscard]] Status commit_lacking(const proto::StoredLacking& lacking);
  [[nodiscard]] Status commit_numbers();  // nothing else changes

  // `change` is applied to the component's state of the moment of the commit, after the changes asked for before.
  void update(ComponentPtr component, Change change, Done done = {});
  // Takes the component out; afterwards it is forgotten. Its files stay.
  void erase(ComponentPtr component, Done done);
  // The same, but it can come back: it is kept for a while with its files.
  void quarantine(ComponentPtr component, Done done);
  // A component comes back from there, as one that is committed.
  void restore(const proto::ComponentState& state, Done done);
  // The entry goes from there; its files stay.
  void end_quarantine(FileId file, Done done);
  // A newer view, packed (catalogue.h).
  void keep_view(std::string packed, Done done);
  // What became of the last scrub.
  void keep_scrub(const catalogue::ScrubRecord& record, Done done);
  // Of which files this LFS lacks its part, all of them.
  void keep_lacking(proto::StoredLacking lacking, Done done);
  // Nothing changes but the root's numbers.
  void note(Done done);

  bool empty() const { return items_.empty(); }
  // Commits what is waiting and calls back.
  void flush();

 private:
  using Write = std::function<Status(kv::Transaction&)>;
  struct Item {
    ComponentPtr component;  // null: `write` alone
    Change change;
    Write write;  // of what goes, or comes
    Done done;
    bool stale = false;
  };
  void leave(ComponentPtr component, Write write, Done done);
  [[nodiscard]] Status commit(std::vector<Item>& items);

  Components& components_;
  Numbers& numbers_;
  Clock& clock_;
  DiskHealth* const health_;
  daemon::Fibers& fibers_;
  std::vector<Item> items_;
};

}  // namespace pif::lfs
