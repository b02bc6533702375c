// Inputs of tools, which nobody may write to meanwhile: the durable part of what Opens knows. An open with `hold` is
// answered when its row is durable, so a server that was killed keeps writers out when it starts again. The row goes
// some time after the hold has ended: what a crash leaves of it ends with its session.
#pragma once

#include "context/sessions.h"
#include "directory/opens.h"
#include "directory/rows.h"
#include "pif/base/clock.h"

namespace pif::server {

class InputLocks {
 public:
  InputLocks(Rows& rows, Opens& opens) : rows_(rows), opens_(opens) {}

  // Restores the stored holds at a start. Their sessions have kAbortGrace to come back.
  [[nodiscard]] Status load(Sessions& sessions, Time now, std::int64_t wall);
  // Writes in this turn what the session has open of the file, `holder`, which holds it.
  [[nodiscard]] Status store(std::uint64_t file, const Session& session, const Holder& holder);
  // Erases in this turn the rows of holds that have ended.
  [[nodiscard]] Status erase_ended();
  bool has_ended() const { return !opens_.ended_holds().empty(); }

 private:
  Rows& rows_;
  Opens& opens_;
};

}  // namespace pif::server
