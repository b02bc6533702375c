// Checks the parity of a file that one LFS keeps in pages: their sums hold, and they are the XOR of the members' rows.
// Bad pages are made anew out of the members' rows. Window by window, in bounded memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scrub/scrub_job.h"

namespace pif::lfs {

class ScrubPages {
 public:
  // only: that page alone, of which there was a doubt.
  explicit ScrubPages(ScrubJob& job, std::optional<std::uint64_t> only = {});
  // Called by a fiber, once.
  void run();

 private:
  // The result of a look at a page.
  struct Verdict {
    std::uint64_t page = 0;
    bool is_bad = false;       // it is to be made anew
    bool is_doubtful = false;  // one member has other rows
    std::string why;           // of what cannot be repaired; or of what is bad
    bool is_hopeless = false;
  };

  [[nodiscard]] bool next_window();
  Range rows_of_window() const;
  MemberOptions member_options() const;
  // Fills sources_.
  void fetch();
  [[nodiscard]] Status fetch_rows(std::optional<std::size_t> without);
  std::optional<std::size_t> note_failure(const Error& error);
  // False: nothing more can be looked at.
  [[nodiscard]] bool look_at_window();
  // Tells of those that are left alone, and returns those that are to be made anew.
  std::vector<Verdict> take_bad(std::vector<Verdict> verdicts);
  void repair(const std::vector<Verdict>& bad);
  [[nodiscard]] Status make_anew(const std::vector<Verdict>& bad);
  void report(const std::string& text, bool is_repaired) const;

  // Away from the loop.
  using Files = component::ParityFiles;
  [[nodiscard]] Result<std::vector<Verdict>> judge_window() const;
  Verdict judge(Files& files, std::uint64_t page) const;
  Verdict judge_bad(Files& files, std::uint64_t page, const std::string& why) const;
  [[nodiscard]] Result<component::PackedRows> stretch_of(std::uint64_t page, std::size_t member) const;
  [[nodiscard]] Result<std::vector<component::VectorEntry>> vector_of(Files& files, std::uint64_t page) const;

  ScrubJob& job_;
  const ComponentPtr component_;
  const std::optional<std::uint64_t> only_;
  std::vector<std::string> names_;              // of the members
  std::uint64_t next_ = 0;                      // page
  Range window_;                                // pages
  std::optional<MemberRows> rows_;              // of the window
  std::vector<component::RowSource*> sources_;  // of rows_; empty: none
};

}  // namespace pif::lfs
