#include "scrub/scrub_missing.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "context/has_server.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kAskAgain = std::chrono::milliseconds(200);

}  // namespace

void ScrubMissing::run() {
  if (!has_server(context_.config)) return;  // nobody else knows
  bool has_more = true;
  for (std::uint64_t after = 0; has_more;) {
    const auto page = list(after);
    if (!page) {
      pass_.report.missed["the PIF Server"] = {0, page.error().text};
      return;
    }
    std::vector<One> lost;
    for (const One& file : page->files())
      if (is_lost(file)) lost.push_back(file);
    for (const One& file : lost) {
      pass_.pace();
      mend(file);
    }
    after = page->last();
    has_more = page->more();
  }
}

Result<proto::ListLostReply> ScrubMissing::list(std::uint64_t after) {
  const Time patience = context_.now() + kPatience;
  for (;;) {
    net::Packet packet;
    proto::ListLost& asked = *packet.envelope.mutable_list_lost();
    asked.set_node(context_.config.node);
    asked.set_after(after);
    const auto reply = server_.ask(std::move(packet));
    if (reply) {
      const auto& page = reply->envelope.list_lost_reply();
      if (!page.more() || page.last() > after) return page;
    }
    if (context_.now() >= patience)
      return fail(reply ? Error{Code::kInvalid, "its list of files goes round in circles", {}} : reply.error());
    pass_.wait_until(context_.now() + kAskAgain);
  }
}

// The directory is never ahead of LFS 0, unless that was put back.
bool ScrubMissing::is_lost(const One& file) const {
  const auto known = context_.components.find(FileId(file.file()));
  if (!known) return known.error().code == Code::kNotFound;
  const proto::ComponentState& state = (*known)->state;
  return (*known)->catalogued && state.shape().index() == 0 &&
         state.published().records() < file.file_length().records();
}

void ScrubMissing::mend(const One& file) {
  const auto known = context_.components.find(FileId(file.file()));
  if (!known)
    return report(file, "nothing of it is here, and a part of it belongs here", mend_.make(file, pass_.only_look));
  const std::string what = fmt::format("its length is kept here, as {} records, and the directory knows of {}",
                                       (*known)->state.published().records(), file.file_length().records());
  if (pass_.only_look) return report(file, what, fail(Code::kCancelled, "as was asked for"));
  report(file, what, mend_.mend(FileId(file.file())));
}

void ScrubMissing::report(const One& file, const std::string& what, const Result<bool>& made) {
  if (made && !*made) return;
  const std::string text =
      fmt::format("file {} ({}): {}; {}", file.file(), file.path(), what,
                  made ? "made anew out of what the others have" : "not made anew: " + made.error().text);
  if (pass_.report.may_log()) spdlog::warn("{}", text);
  pass_.report.add(FileId(file.file()), text, made.has_value());
}

}  // namespace pif::lfs
