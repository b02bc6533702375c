// A drill: this LFS takes itself out of the view, as if its disk were lost, and the others do without it. File by file
// it has its rows rebuilt by them, into files without names on its own disk, and compares these with what it has, bit
// for bit. Then it comes back like any node that was away. One thread.
//
//   kIdle -> kLeaving -> kComparing -> kReturning -> kIdle;  kLeaving -> kIdle: it is not taken out
#pragma once

#include <string>
#include <vector>

#include "parity/keeping.h"
#include "rebuild/rate_limit.h"
#include "requests/reporting.h"
#include "stand_in/stand_in_rows.h"

namespace pif::lfs {

class Drill final : public ViewWatcher {
 public:
  Drill(Keeping& keeping, Reporting& reporting);

  [[nodiscard]] Result<net::Packet> drill(const Request& request, const proto::Drill& asked);
  [[nodiscard]] Result<net::Packet> drill_status(const Request& request, const proto::DrillStatus& asked);

 private:
  void view_adopted() override { news_.notify(); }

  enum class Phase : std::uint8_t { kIdle, kLeaving, kComparing, kReturning };
  // One file under comparison.
  struct Comparison {
    ComponentPtr component;
    component::Tail own;
    NamelessFiles files{};      // what is rebuilt
    component::Tail rebuilt{};  // of those
  };

  std::uint32_t own_state() const { return context_.view.state_of(context_.config.node); }
  // On a fiber of its own, as long as this object lives.
  void serve();
  // Whether it has been taken out; false: the server refuses it.
  [[nodiscard]] bool leave();
  void compare_all();
  void come_back();
  [[nodiscard]] Result<net::Packet> tell(wire::ViewState state);

  // Appends the next files of the catalogue, from `next` on, which moves. False: there are no more.
  [[nodiscard]] bool list_files(std::uint64_t& next, std::vector<FileId>& files);
  void compare(FileId file);
  [[nodiscard]] Status rebuild_and_compare(Comparison& comparison);
  [[nodiscard]] Result<FileLength> ask_length(const Component& component);
  [[nodiscard]] Status rebuild(Comparison& comparison, const FileLength& file_length);
  void note(Error error);

  Keeping& keeping_;
  LfsContext& context_;
  Reporting& server_;
  Phase phase_ = Phase::kIdle;
  daemon::Event news_;  // a drill is to begin, or has another rate, or there is a new view
  RateLimit rate_;
  Time begun_{};
  Time ended_{};
  std::uint64_t number_ = 0;  // of files without names
  std::uint64_t files_ = 0, files_total_ = 0, bytes_ = 0, bytes_total_ = 0, differing_ = 0;
  std::vector<Error> errors_;
};

}  // namespace pif::lfs
