#include "pif/tool/exchange.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "move/rows.h"
#include "pif/base/assert.h"
#include "pif/tool/message.h"
#include "pif/tool/team.h"
#include "worker/mail.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

constexpr int kTakesPerTurn = 32;          // messages taken between two looks at what may be sent
constexpr std::uint32_t kFullWindows = 4;  // as many destinations get the window in full; more share what that makes

}  // namespace

// Carries messages and credit between the workers of a job.
class Exchange {
 public:
  Exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options);
  [[nodiscard]] Status open();
  [[nodiscard]] Status run();

 private:
  [[nodiscard]] Status find_sources();
  std::optional<LfsIndex> lfs_of(std::uint32_t rank) const;
  [[nodiscard]] Status open_receiver();
  [[nodiscard]] Status open_sender();
  [[nodiscard]] Status answer_ready(std::uint32_t rank);
  [[nodiscard]] Status take_window(std::uint32_t rank, const job::Window& window, std::vector<Handle> handles);
  [[nodiscard]] Status take_grant(std::uint32_t rank, const job::Grant& grant);
  [[nodiscard]] Status send_message(RowMessage message);
  [[nodiscard]] Status take(Letter letter);
  [[nodiscard]] Status take_batch(Letter letter);
  [[nodiscard]] Status take_messages(bool may_wait);
  [[nodiscard]] Status tell_settled(bool now);
  bool is_done() const;
  void show_progress();

  Worker& worker_;
  Input& input_;
  Output& output_;
  ExchangeOptions options_;
  WindowSize window_;
  Mail* mail_ = nullptr;
  std::map<std::uint32_t, SharedMemory> windows_;  // of the destinations on this machine, by rank
  std::optional<RowSender> sender_;                // if this LFS is one of the input's
  std::optional<RowReceiver> receiver_;            // if it is one of the output's
  std::vector<std::uint32_t> sources_;             // ranks of the workers with rows of the input
  std::vector<std::uint32_t> destinations_;        // ranks of the workers on the output's LFSs, in their order
  Row told_ = 0;                                   // settled rows that the sources know of
  std::uint64_t bytes_taken_ = 0;
};

Exchange::Exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options)
    : worker_(worker), input_(input), output_(output), options_(options) {}

// ---- the beginning ------------------------------------------------------------------------------------------------

// Of the output; nothing if that worker's LFS is none of them.
std::optional<LfsIndex> Exchange::lfs_of(std::uint32_t rank) const {
  const auto found = std::find(destinations_.begin(), destinations_.end(), rank);
  if (found == destinations_.end()) return std::nullopt;
  return static_cast<LfsIndex>(found - destinations_.begin());
}

Status Exchange::find_sources() {
  const parity::Layout& from = input_.layout();
  PIF_TRY_VALUE(const auto ranks, worker_.ranks_on(input_));
  for (LfsIndex lfs = 0; lfs < from.width(); ++lfs) {
    if (from.rows(lfs, input_.file_length().records) > 0) sources_.push_back(ranks[lfs]);
  }
  PIF_TRY_VALUE(destinations_, worker_.ranks_on(output_));
  PIF_ASSERT(ranks.size() == from.width() && destinations_.size() == output_.layout().width(), ranks.size(),
             destinations_.size());
  return {};
}

Status Exchange::open_receiver() {
  if (!output_.is_here()) return {};
  receiver_.emplace(output_, input_.file_length(), window_);
  PIF_TRY(receiver_->open());
  return receiver_->advance();
}

// Asks all destinations where rows go.
Status Exchange::open_sender() {
  if (!input_.is_here() || input_.rows() == 0) return {};
  sender_.emplace(input_, output_.layout(), window_);
  job::Mail ready;
  ready.mutable_ready();
  for (const std::uint32_t rank : destinations_) {
    if (rank != worker_.rank()) PIF_TRY(mail_->send(rank, ready));
  }
  if (receiver_) sender_->open(output_.index(), receiver_->memory().bytes());
  return {};
}

Status Exchange::open() {
  if (input_.format() != output_.format()) {
    return fail(Code::kInvalid,
                fmt::format("{} and {} have different record formats", input_.file().path, output_.file().path));
  }
  PIF_TRY(find_sources());
  const std::size_t window_bytes =
      options_.window_bytes * kFullWindows / std::max(output_.layout().width(), kFullWindows);
  window_ = WindowSize::of(input_.format(), window_bytes, static_cast<std::uint32_t>(sources_.size()));
  PIF_TRY_VALUE(mail_, Mail::of(worker_));
  mail_->next_step();
  PIF_TRY(open_receiver());
  return open_sender();
}

Status Exchange::answer_ready(std::uint32_t rank) {
  if (!receiver_) return sent_nonsense(rank, "it asks for a window where it gets no rows");
  const SharedMemory& memory = receiver_->memory();
  job::Mail answer;
  job::Window& window = *answer.mutable_window();
  if (!memory.empty() && options_.share_memory) {
    window.set_bytes(memory.bytes().size());
    window.set_rows(window_.rows);
    std::vector<Handle> handles(1);
    PIF_TRY_VALUE(handles[0], memory.share());
    if (mail_->pass(rank, answer, std::move(handles))) return {};
    window.Clear();  // it is on another machine
  }
  return mail_->send(rank, answer);
}

Status Exchange::take_window(std::uint32_t rank, const job::Window& window, std::vector<Handle> handles) {
  if (!sender_ || !lfs_of(rank)) return sent_nonsense(rank, "a window that was not asked for");
  if (windows_.contains(rank)) return {};
  SharedMemory memory;
  if (window.bytes() > 0) {
    const bool fits = handles.size() == 1 && window.rows() == window_.rows && input_.format().is_fixed() &&
                      window.bytes() == window_.rows * input_.format().record_length;
    if (!fits) return sent_nonsense(rank, "a window of another size than this worker's");
    auto adopted = SharedMemory::adopt(std::move(handles[0]), window.bytes());
    if (!adopted) return sent_wrong(rank, adopted.error());
    memory = std::move(*adopted);
    memory.populate(0, window.bytes());
  }
  const SharedMemory& kept = windows_[rank] = std::move(memory);
  if (const auto lfs = lfs_of(rank)) sender_->open(*lfs, kept.bytes());
  return {};
}

bool Exchange::is_done() const { return (!receiver_ || receiver_->is_done()) && (!sender_ || sender_->is_settled()); }

Status Exchange::run() {
  while (!is_done()) {
    bool sent = false;
    if (sender_) {
      PIF_TRY_VALUE(sent, sender_->step([this](RowMessage message) { return send_message(std::move(message)); }));
      // A block that is sent is followed by the next one at once.
      sent = sent || !sender_->is_waiting();
    }
    PIF_TRY(tell_settled(!sent));
    if (is_done()) break;
    PIF_TRY(take_messages(!sent));
    show_progress();
  }
  PIF_TRY(tell_settled(true));
  // Nobody leaves before all are done: what is sent to one who has left holds up its sender's end. But nothing is wrong
  // if word of it gets lost: the rows are where they belong.
  PIF_TRY_VALUE(Team team, Team::join(worker_, options_.silence));
  const Status all_done = team.barrier();
  return all_done || all_done.error().code == Code::kTimeout ? Status() : all_done;
}

// ---- rows ---------------------------------------------------------------------------------------------------------

Status Exchange::send_message(RowMessage message) {
  PIF_ASSERT(message.to < destinations_.size() && message.count > 0, message.to, destinations_.size(), message.count);
  const std::uint32_t rank = destinations_[message.to];
  if (rank == worker_.rank()) {
    PIF_ASSERT(receiver_.has_value(), message.to);
    PIF_TRY(receiver_->accept(std::move(message)));
    sender_->settle(output_.index(), receiver_->settled());
    return {};
  }
  worker_.count_sent(message.record_bytes);
  job::Mail mail;
  job::Batch& batch = *mail.mutable_batch();
  batch.set_first(message.first);
  batch.set_count(message.count);
  batch.set_stride(message.stride);
  batch.set_placed(message.placed);
  return mail_->send(rank, mail, std::move(message.body));
}

Status Exchange::take_batch(Letter letter) {
  if (!receiver_) return sent_nonsense(letter.from, "rows for an LFS that is not one of the output's");
  const job::Batch& batch = letter.mail.batch();
  RowMessage message;
  message.first = batch.first();
  message.count = batch.count();
  message.stride = batch.stride();
  message.placed = batch.placed();
  const std::uint64_t bytes = message.placed ? batch.count() * output_.format().record_length : letter.body.size();
  message.body = std::move(letter.body);
  if (const auto taken = receiver_->accept(std::move(message)); !taken) return sent_wrong(letter.from, taken.error());
  bytes_taken_ += bytes;
  if (sender_) sender_->settle(output_.index(), receiver_->settled());
  return {};
}

// ---- messages -----------------------------------------------------------------------------------------------------

Status Exchange::take_grant(std::uint32_t rank, const job::Grant& grant) {
  const auto lfs = lfs_of(rank);
  const Row settled = grant.limit() - std::min(grant.limit(), window_.rows);
  if (!sender_ || !lfs || settled > output_.layout().rows(*lfs, input_.file_length().records))
    return sent_nonsense(rank,
                         fmt::format("leave to send rows below {}, which its component has no use for", grant.limit()));
  sender_->settle(*lfs, settled);
  return {};
}

Status Exchange::take(Letter letter) {
  switch (letter.mail.what_case()) {
    case job::Mail::kReady: return answer_ready(letter.from);
    case job::Mail::kWindow: return take_window(letter.from, letter.mail.window(), std::move(letter.handles));
    case job::Mail::kBatch: return take_batch(std::move(letter));
    case job::Mail::kGrant: return take_grant(letter.from, letter.mail.grant());
    case job::Mail::kHere:
    case job::Mail::kPass:
    case job::Mail::kWord:
    case job::Mail::WHAT_NOT_SET: break;
  }
  return sent_nonsense(letter.from, "a letter of another kind than an exchange has");
}

// Takes what is there; waits for the first message if nothing else can be done.
Status Exchange::take_messages(bool may_wait) {
  Time until = may_wait ? worker_.clock().now() + options_.silence : Time{};
  for (int i = 0; i < kTakesPerTurn; ++i) {
    PIF_TRY_VALUE(auto letter, mail_->receive(until));
    if (!letter && may_wait && i == 0) {
      return fail(Code::kTimeout,
                  fmt::format("no other worker has sent anything for {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(options_.silence).count()));
    }
    if (!letter) return {};
    PIF_TRY(take(std::move(*letter)));
    until = Time{};
  }
  return {};
}

// Sources need not know of every row that is written; but before this worker waits, they know of all.
Status Exchange::tell_settled(bool now) {
  if (!receiver_ || receiver_->settled() == told_) return {};
  if (!now && !receiver_->is_done() && receiver_->settled() - told_ < window_.rows / 4) return {};
  PIF_ASSERT(receiver_->settled() > told_, receiver_->settled(), told_);
  told_ = receiver_->settled();
  job::Mail mail;
  mail.mutable_grant()->set_limit(told_ + window_.rows);
  for (const std::uint32_t rank : sources_) {
    if (rank != worker_.rank()) PIF_TRY(mail_->send(rank, mail));
  }
  return {};
}

void Exchange::show_progress() {
  const std::uint64_t expected =
      receiver_ ? input_.file_length().bytes / output_.layout().width() : 0;  // near enough for people's eyes
  const std::uint64_t own = sender_ ? input_.bytes() : 0;
  worker_.progress(input_.bytes_read() + bytes_taken_, own + expected);
}

Status exchange(Worker& worker, Input& input, Output& output, const ExchangeOptions& options) {
  Exchange exchange(worker, input, output, options);
  PIF_TRY(exchange.open());
  return exchange.run();
}

}  // namespace pif::tool
