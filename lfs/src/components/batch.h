// Changes of the catalogue that share a transaction: everything that the requests of one turn of the loop ask for is
// committed at once (group commit), then their fibers go on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "components/components.h"
#include "pif/daemon/fibers.h"
#include "pif/lfs/disk_health.h"
#include "store/catalogue.h"
#include "store/numbers.h"

namespace pif::lfs {

class CatalogueBatch {
 public:
  using Change = std::function<void(proto::ComponentState&)>;

  // clock: of the quarantine. health: gets commits that fail; may be null.
  CatalogueBatch(Components& components, Numbers& numbers, Clock& clock, DiskHealth* health, daemon::Fibers& fibers)
      : components_(components), numbers_(numbers), clock_(clock), health_(health), fibers_(fibers) {}

  // Each is called by a fiber, and waits until the change is durable, with all others of the turn. Error: it is not.

  // `change` is applied to the component's state of the moment of the commit, after the changes asked for before.
  // kStaleFile: the component was removed meanwhile.
  [[nodiscard]] Status commit(const ComponentPtr& component, Change change);
  // The same for each of these; one that is removed meanwhile is passed over. It waits once.
  using ChangeOf = std::function<void(const Component& component, proto::ComponentState& state)>;
  [[nodiscard]] Status commit_each(const std::vector<ComponentPtr>& components, const ChangeOf& change);
  // Takes the component out; afterwards it is forgotten. Its files stay.
  [[nodiscard]] Status commit_erase(const ComponentPtr& component);
  // The same, but it can come back: it is kept for a while with its files.
  [[nodiscard]] Status commit_quarantine(const ComponentPtr& component);
  // A component comes back from there, as one that is committed.
  [[nodiscard]] Status commit_restore(const proto::ComponentState& state);
  // The entry goes from there; its files stay.
  [[nodiscard]] Status commit_end_quarantine(FileId file);
  // A newer view, packed (catalogue.h).
  [[nodiscard]] Status commit_view(const std::string& packed);
  // The outcome of the last scrub.
  [[nodiscard]] Status commit_scrub(const catalogue::ScrubRecord& record);
  // All files of which this LFS lacks its part.
  [[nodiscard]] Status commit_lacking(const proto::StoredLacking& lacking);
  // Nothing changes but the root's numbers.
  [[nodiscard]] Status commit_numbers();

  bool empty() const { return items_.empty(); }
  // Commits what is waiting; those who wait for it go on.
  void flush();

 private:
  using Write = std::function<Status(kv::Transaction&)>;
  // The outcome of one call, for which its fiber waits.
  struct Outcome {
    std::size_t waiting = 0;  // items
    bool is_stale = false;    // a component was removed
    Status status;
    daemon::Fibers::WaitId id{};
  };
  struct Item {
    ComponentPtr component;  // null: `write` alone
    Change change;
    Write write;  // of what goes, or comes
    std::shared_ptr<Outcome> outcome;
    bool is_stale = false;
  };
  // All of these, which have no outcome yet.
  std::shared_ptr<Outcome> await(std::vector<Item> items);
  Status commit_write(ComponentPtr component, Write write);
  [[nodiscard]] Status commit_items(std::vector<Item>& items);
  void end(Item& item, const Status& committed);

  Components& components_;
  Numbers& numbers_;
  Clock& clock_;
  DiskHealth* const health_;
  daemon::Fibers& fibers_;
  std::vector<Item> items_;
};

}  // namespace pif::lfs
