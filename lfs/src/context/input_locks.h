// Components that workers have as inputs: nobody changes them meanwhile. The PIF Server refuses writers of a file that
// a tool holds, but not those who got their capability before and whose lease it has forgotten (a broken connection, a
// restart). So a worker holds the component's lock until it has gone.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>

#include "components/components.h"
#include "pif/base/assert.h"
#include "pif/base/ids.h"
#include "pif/net/messenger.h"

namespace pif::lfs {

class InputLocks {
 public:
  using IsWorker = std::function<bool(net::PeerId)>;  // whether it is the connection of a worker that lives

  explicit InputLocks(IsWorker is_worker) : is_worker_(std::move(is_worker)) {}

  bool is_worker(net::PeerId peer) const { return is_worker_(peer); }
  // Whether that worker has the file's component.
  bool has(net::PeerId worker, FileId file) const {
    const auto found = inputs_.find(worker);
    return found != inputs_.end() && found->second.contains(file.value);
  }
  // Until drop(worker). input: held as kInput.
  void keep(net::PeerId worker, LockedComponent input) {
    PIF_ASSERT(is_worker(worker) && input.held.is_held() && input.component->lock.is_held(Mode::kInput), worker);
    const auto id = input.component->file.value;
    inputs_[worker].try_emplace(id, std::move(input));
  }
  // It has gone.
  void drop(net::PeerId worker) { inputs_.erase(worker); }

 private:
  IsWorker is_worker_;
  std::unordered_map<net::PeerId, std::unordered_map<std::uint64_t, LockedComponent>> inputs_;  // by worker and file
};

}  // namespace pif::lfs
