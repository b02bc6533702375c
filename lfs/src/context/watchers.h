// The interfaces through which lower rooms call upper ones. One class or few implement each. All are called on the
// loop's thread.
#pragma once

#include "components/components.h"
#include "pif/base/result.h"

namespace pif::lfs {

// Somebody to whom an older view's grants and ranges are void. LfsContext::view_watchers has them.
class ViewWatcher {
 public:
  // A newer view was adopted. Does not wait.
  virtual void view_adopted() = 0;

 protected:
  ~ViewWatcher() = default;
};

// Somebody who keeps files that can be made again. LfsContext::space_makers has them.
class SpaceMaker {
 public:
  // Closes such files: whether there were any. Does not wait.
  virtual bool make_space() = 0;

 protected:
  ~SpaceMaker() = default;
};

// How far this node has come with what others wrote without it. LfsContext::rebuilding is it.
class RebuildProgress {
 public:
  // As people are shown it; 0 of a node that is not being rebuilt.
  virtual std::uint32_t percent() const = 0;

 protected:
  ~RebuildProgress() = default;
};

// The sequencer of a file with parity knows its length.
class LengthsAtRest {
 public:
  // The length, if no range is under way: rows behind it are nobody's. Else kRetry, kInvalid, kUnavailable. Does not
  // wait.
  [[nodiscard]] virtual Result<FileLength> length_at_rest(const ComponentPtr& component) = 0;

 protected:
  ~LengthsAtRest() = default;
};

}  // namespace pif::lfs
