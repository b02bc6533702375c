// A drill: this LFS takes itself out of the view, as if its disk were lost, and the others do without it. What they
// would rebuild of its rows is rebuilt into files without names on its own disk, file by file, and held against what
// it has, bit for bit. Then it comes back like any node that was away. One thread.
//
//   kIdle -> kLeaving -> kComparing -> kReturning -> kIdle
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "parity/keeping.h"
#include "parity/rate_limit.h"
#include "parity/rebuild.h"
#include "parity/stand_in_rows.h"

namespace pif::lfs {

class Drill {
 public:
  Drill(Keeping& keeping, Rebuild::Ask ask);

  [[nodiscard]] Result<net::Packet> drill(const Request& request, const proto::Drill& asked);
  [[nodiscard]] Result<net::Packet> drill_status(const Request& request, const proto::DrillStatus& asked);
  // Once per turn.
  void tick();
  Time next_deadline() const;

 private:
  enum class Phase : std::uint8_t { kIdle, kLeaving, kComparing, kReturning };
  // Of one file.
  struct Turn {
    ComponentPtr component;
    FileLength file_length;  // as far as its rows are here, and published
    component::Tail own;
    NamelessFiles files;
    component::Tail rebuilt;
    std::shared_ptr<RowsBack> rows_back;
    std::unique_ptr<access::Grant> grant;  // of the question for the length
    Status result;
  };
  using TurnPtr = std::shared_ptr<Turn>;

  std::uint32_t own_state() const { return context_.view.state_of(context_.config.node); }
  void tell(wire::ViewState state);
  void begin_comparing();
  void compare_some();
  void refill();
  void start(FileId file);
  void find_length(const TurnPtr& turn);
  [[nodiscard]] Status limit(Turn& turn) const;
  [[nodiscard]] Status rebuild(const TurnPtr& turn);
  void compare(const TurnPtr& turn);
  void end_turn(const Status& status);
  void note(Error error);

  Keeping& keeping_;
  LfsContext& context_;
  const Rebuild::Ask ask_;
  Phase phase_ = Phase::kIdle;
  bool is_telling_ = false;
  Time give_up_at_ = kNever;  // what was told has not become the view
  Time next_try_{};
  RateLimit rate_;
  Time begun_{};
  Time ended_{};

  std::uint64_t next_id_ = 0;  // of the catalogue
  bool has_all_ = false;       // its end was reached
  std::deque<FileId> queue_;
  TurnPtr turn_;
  std::uint64_t number_ = 0;  // of files without names
  std::uint64_t files_ = 0, files_total_ = 0, bytes_ = 0, bytes_total_ = 0, differing_ = 0;
  std::vector<Error> errors_;
};

}  // namespace pif::lfs
