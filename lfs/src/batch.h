// Changes of the catalogue that share a transaction: everything that the requests of one turn of the loop ask for is
// committed at once (group commit), then they are answered.
#pragma once

#include <functional>
#include <vector>

#include "components.h"

namespace pif::lfs {

class CatalogueBatch {
 public:
  using Change = std::function<void(proto::ComponentState&)>;
  using Done = std::function<void(const Status&)>;  // durable now, or why not; may ask for further changes

  explicit CatalogueBatch(Components& components) : components_(components) {}

  // `change` is applied to the component's state of the moment of the commit, after the changes asked for before.
  void update(ComponentPtr component, Change change, Done done = {});
  // Takes the component out; afterwards it is forgotten. Its files stay.
  void erase(ComponentPtr component, Done done);

  bool empty() const { return items_.empty(); }
  // Commits what is waiting and calls back.
  void flush();

 private:
  struct Item {
    ComponentPtr component;
    Change change;   // none: erase
    Done done;
    bool stale = false;
  };
  [[nodiscard]] Status commit(std::vector<Item>& items);

  Components& components_;
  std::vector<Item> items_;
};

}  // namespace pif::lfs
