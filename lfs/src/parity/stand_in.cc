#include "parity/stand_in.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/timers.h"

namespace pif::lfs {
namespace {

using proto::Envelope;

constexpr Duration kViewPatience = std::chrono::seconds(5);      // with a view that is on its way
constexpr Duration kWritersLook = std::chrono::milliseconds(5);  // whether an output has still writers
constexpr Duration kInputUnused = std::chrono::seconds(60);      // then it goes; who has it keeps it
constexpr Duration kOutputUnused = std::chrono::hours(1);        // of one whose worker has ended
constexpr Duration kDropEvery = std::chrono::seconds(1);         // what is not used is looked for
constexpr std::size_t kInputsMax = 512;                          // each has up to four files open
constexpr std::size_t kOutputsMax = 512;

std::uint32_t node_of(const proto::ComponentShape& shape) {
  return shape.layout().nodes(static_cast<int>(shape.index()));
}

Error not_absent(const std::string& name, std::uint64_t view) {
  return {Code::kOldView,
          fmt::format("{} takes part in view {}, so nobody stands in for it: start the tool again", name, view),
          {}};
}

}  // namespace

StandIn::StandIn(Keeping& keeping) : keeping_(keeping), context_(keeping.context) {
  context_.space_makers.emplace_back([this] { return drop_spare_inputs(context_.now()); });
}

bool StandIn::take(const Request& request) {
  const Envelope& envelope = request.envelope();
  switch (envelope.op_case()) {
    case Envelope::kAttach:
      if (!envelope.attach().has_instead_of()) return false;
      attach(request, envelope.attach());
      return true;
    case Envelope::kSeal:
      if (!is_stood_in(envelope.seal().shape())) return false;
      seal(request, envelope.seal());
      return true;
    case Envelope::kGather: {
      const proto::ComponentShape& shape = envelope.gather().shape();
      if (!is_stood_in(shape)) return false;
      Status is_current = context_.check_view(envelope.gather().view());
      if (is_current && !is_absent(shape))
        is_current = fail(not_absent(name_of_node(node_of(shape)), context_.view.index()));
      // The absent LFS gathers when it is rebuilt.
      context_.replies.answer(context_.replies.defer(request), is_current);
      return true;
    }
    default: return false;
  }
}

// Of another LFS of such a file, which is absent, or was when its rows came here.
bool StandIn::is_stood_in(const proto::ComponentShape& shape) const {
  if (!keeps_parity(shape) || shape.index() >= static_cast<std::uint32_t>(shape.layout().nodes_size())) return false;
  if (node_of(shape) == context_.config.node) return false;
  return is_absent(shape) || outputs_.contains({shape.file(), shape.index()});
}

bool StandIn::is_absent(const proto::ComponentShape& shape) const { return context_.view.is_absent(node_of(shape)); }

std::string StandIn::name_of_node(std::uint32_t node) const {
  const proto::NodeInfo* const known = context_.peer_list.find(node);
  return known != nullptr ? known->name() : fmt::format("node {}", node);
}

// ---- Attach --------------------------------------------------------------------------------------------------------

// Of an input the file's own component here says what it is.
Result<proto::ComponentShape> StandIn::shape_asked(const Request& request) {
  const proto::Attach& asked = request.envelope().attach();
  proto::ComponentShape shape;
  if (asked.has_create()) {
    shape = asked.create();
  } else {
    PIF_TRY_VALUE(const auto own, context_.published(request, FileId(asked.file())));
    shape = own->state.shape();
    shape.set_index(asked.instead_of());
  }
  const bool is_other = shape.index() == asked.instead_of() &&
                        shape.index() < static_cast<std::uint32_t>(shape.layout().nodes_size()) &&
                        node_of(shape) != context_.config.node;
  if (!is_other || !keeps_parity(shape))
    return fail(Code::kInvalid, fmt::format("file {} has no LFS {} that another one could stand in for", shape.file(),
                                            asked.instead_of()));
  PIF_TRY(shape_of(shape));
  PIF_TRY(layout_of(shape.layout()));
  PIF_TRY(context_.check_present(shape));
  return shape;
}

void StandIn::attach(const Request& request, const proto::Attach& asked) {
  using Via = net::Identity::Via;
  const auto via = context_.world.messenger.identity(request.peer).via;
  if (via != Via::kUnix && via != Via::kSimulated)
    return context_.replies.answer(request, fail(Code::kUnsupported,
                                                 "descriptors travel over Unix sockets only: ask those who "
                                                 "keep the parity of an absent LFS"));
  auto shape = shape_asked(request);
  if (!shape) return context_.replies.answer(request, fail(std::move(shape.error())));
  Ask ask;
  ask.token = context_.replies.defer(request);
  ask.peer = request.peer;
  ask.shape = std::move(*shape);
  ask.is_new = asked.has_create();
  if (ask.is_new) ask.shape.set_owner(request.capability.uid);
  ask.file_length = file_length_of(asked.file_length());
  ask.epoch = request.capability.epoch;
  ask.patience = context_.now() + kViewPatience;
  if (!serve(ask)) asks_.push_back(std::move(ask));
}

bool StandIn::serve(const Ask& ask) {
  if (!context_.replies.is_waiting(ask.token)) return true;
  if (!is_absent(ask.shape)) {
    if (context_.now() < ask.patience) {
      context_.peer_list.want();
      return false;
    }
    context_.replies.answer(ask.token, fail(not_absent(name_of_node(node_of(ask.shape)), context_.view.index())));
    return true;
  }
  const Status served = ask.is_new ? serve_output(ask) : serve_input(ask);
  if (!served) context_.replies.answer(ask.token, served);
  return true;
}

void StandIn::answer(ReplyToken token, const proto::ComponentState& state, component::Files& files) {
  net::Packet reply;
  *reply.envelope.mutable_attach_reply()->mutable_state() = state;
  auto handles = component::share(files);
  if (!handles) return context_.replies.answer(token, fail(std::move(handles.error())));
  reply.handles = std::move(*handles);
  context_.replies.answer(token, Result<net::Packet>(std::move(reply)));
}

Result<AbsentRowsPtr> StandIn::absent_rows(const proto::ComponentShape& shape, std::uint64_t epoch,
                                           std::uint32_t rights, std::uint32_t uid) {
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY_VALUE(auto layout, layout_of(shape.layout()));
  PIF_TRY_VALUE(const auto peers, keeping_.peers.grant(shape, epoch));
  auto renew = [this, epoch, rights, uid]() -> Result<access::Grant::Capability> {
    const std::int64_t until = context_.world.messenger.clock().wall_seconds() + kCapabilitySeconds;
    // A daemon's, as those of Peers; components that rows are copied to get that owner.
    const Capability capability{FileId(0), uid, kMayManage | rights, epoch, until};
    return access::Grant::Capability{mint(context_.config.key, capability), until};
  };
  auto grant = std::make_unique<access::Grant>(peers->parts(), std::move(renew));
  PIF_TRY(grant->renew());
  auto rows = std::make_shared<AbsentRows>(AbsentRows{shape, made, std::move(layout), std::move(grant)});
  PIF_TRY(check_keepers(*rows));
  return rows;
}

Status StandIn::check_keepers(const AbsentRows& rows) const {
  for (const LfsIndex keeper : rows.layout.keepers(rows.index())) {
    const std::uint32_t node = rows.shape.layout().nodes(static_cast<int>(keeper));
    if (!context_.view.is_absent(node)) continue;
    const std::string away = name_of_node(node_of(rows.shape));
    return fail(Code::kUnavailable,
                fmt::format("{} and {}, which keeps the parity of its rows, are both absent", away, name_of_node(node)),
                away);
  }
  return {};
}

// ---- inputs --------------------------------------------------------------------------------------------------------

Status StandIn::serve_input(const Ask& ask) {
  PIF_TRY_VALUE(const auto shape, shape_of(ask.shape));
  PIF_TRY(check_file_length(shape.format, ask.file_length));
  const Key key{ask.shape.file(), ask.shape.index(), ask.file_length.records, ask.file_length.bytes};
  const auto found = inputs_.find(key);
  if (found == inputs_.end()) return restore(ask, key);
  Input& input = found->second;
  input.used = context_.now();
  if (input.is_ready)
    answer(ask.token, input.state, *input.files.readable);
  else
    input.waiting.push_back(ask.token);
  return {};
}

Status StandIn::restore(const Ask& ask, const Key& key) {
  PIF_TRY_VALUE(auto rows, absent_rows(ask.shape, ask.epoch, kMayRead, context_.config.uid));
  if (inputs_.size() >= kInputsMax && !drop_spare_inputs(context_.now()))
    return fail(Code::kBusy,
                fmt::format("rows of {} files are being restored here for tools: try again later", inputs_.size()));
  PIF_TRY(context_.check_space(RowsBack::bytes_of(*rows, ask.file_length)));
  PIF_TRY_VALUE(auto files,
                make_nameless_files(context_.world.storage, context_.config.root, rows->made, ++files_made_));
  spdlog::info("stands in for {}: restores its rows of file {}", name_of_node(node_of(ask.shape)), ask.shape.file());
  Input& input = inputs_[key];
  input.files = files;
  input.waiting.push_back(ask.token);
  input.state.set_state(kCommitted);
  *input.state.mutable_shape() = ask.shape;
  *input.state.mutable_published() = wire::proto_of(ask.file_length);
  input.state.set_epoch(ask.epoch);
  const auto run =
      std::make_shared<RowsBack>(keeping_, std::move(rows), ask.file_length, RowsBack::Place{files.writable, {}, 0});
  run->start([this, key](const Status& status, const component::Tail& tail) { restored(key, status, tail); });
  return {};
}

void StandIn::restored(const Key& key, const Status& status, const component::Tail& tail) {
  const auto found = inputs_.find(key);
  PIF_ASSERT(found != inputs_.end() && !found->second.is_ready, std::get<0>(key), std::get<1>(key));
  Input& input = found->second;
  const auto waiting = std::exchange(input.waiting, {});
  if (!status) {
    inputs_.erase(found);
    for (const ReplyToken token : waiting) context_.replies.answer(token, status);
    return;
  }
  set_tail(input.state, tail);
  input.is_ready = true;
  input.used = context_.now();
  input.files.writable.reset();
  for (const ReplyToken token : waiting) answer(token, input.state, *input.files.readable);
}

bool StandIn::drop_spare_inputs(Time unused_since) {
  return std::erase_if(inputs_, [&](const auto& entry) {
           const Input& input = entry.second;
           return input.is_ready && input.waiting.empty() && input.used <= unused_since;
         }) > 0;
}

// ---- outputs -------------------------------------------------------------------------------------------------------

Status StandIn::serve_output(const Ask& ask) {
  PIF_TRY(context_.check_space(0));
  const FileKey key{ask.shape.file(), ask.shape.index()};
  if (const auto own = context_.components.find(FileId(key.first)); !own && own.error().code != Code::kNotFound)
    return fail(own.error());
  auto found = outputs_.find(key);
  if (found == outputs_.end()) {
    if (outputs_.size() >= kOutputsMax)
      return fail(Code::kBusy, fmt::format("{} files are being written here for absent LFSs", outputs_.size()));
    PIF_TRY_VALUE(const auto shape, shape_of(ask.shape));
    PIF_TRY_VALUE(auto files, make_nameless_files(context_.world.storage, context_.config.root, shape, ++files_made_));
    found = outputs_.try_emplace(key).first;
    found->second.files = std::move(files);
    found->second.state.set_state(kOpen);
    *found->second.state.mutable_shape() = ask.shape;
  }
  Output& output = found->second;
  if (!is_same_shape(output.state.shape(), ask.shape))
    return fail(Code::kInvalid,
                fmt::format("file {} was begun with another format or layout", name_of(FileId(key.first))));
  if (ask.epoch < output.epoch)
    return fail(Code::kBadCapability, fmt::format("the capability has epoch {}, file {} has {}: open the file again",
                                                  ask.epoch, name_of(FileId(key.first)), output.epoch));
  if (output.step != Step::kFilling)
    return fail(Code::kExists,
                fmt::format("file {} is complete here: it cannot be written any more", name_of(FileId(key.first))));
  output.epoch = ask.epoch;
  output.worker = ask.peer;
  output.used = context_.now();
  PIF_ASSERT(output.files.writable != nullptr, key.first, key.second);
  answer(ask.token, output.state, *output.files.writable);
  return {};
}

void StandIn::seal(const Request& request, const proto::Seal& asked) {
  if (auto begun = begin_seal(request, asked); !begun) context_.replies.answer(request, fail(std::move(begun.error())));
}

Status StandIn::check_seal(const proto::Seal& asked) const {
  const proto::ComponentShape& shape = asked.shape();
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY_VALUE(const auto layout, layout_of(shape.layout()));
  const FileLength file_length = file_length_of(asked.file());
  PIF_TRY(check_file_length(made.format, file_length));
  const std::uint64_t rows = layout.rows(shape.index(), file_length.records);
  const std::uint64_t bytes =
      made.format.is_fixed()
          ? fixed_component_bytes(layout, shape.index(), made.format.record_length, rows, file_length)
          : asked.bytes();
  if (rows != asked.rows() || bytes != asked.bytes())
    return fail(
        Code::kInvalid,
        fmt::format("of a file of {} records and {} bytes, {} rows and {} bytes are LFS {}'s, not {} and {}",
                    file_length.records, file_length.bytes, rows, bytes, shape.index(), asked.rows(), asked.bytes()));
  return component::check_tail(made, {asked.rows(), asked.bytes(), asked.data_tail_sum(), asked.index_tail_sum()});
}

// Answers, or will.
Status StandIn::begin_seal(const Request& request, const proto::Seal& asked) {
  const proto::ComponentShape& shape = asked.shape();
  const FileKey key{shape.file(), shape.index()};
  if (!is_absent(shape)) return fail(not_absent(name_of_node(node_of(shape)), context_.view.index()));
  PIF_TRY(context_.check_present(shape));
  PIF_TRY(check_seal(asked));
  const auto found = outputs_.find(key);
  if (found == outputs_.end()) {
    if (asked.rows() > 0)
      return fail(Code::kNotFound, fmt::format("file {} has no rows here: this LFS was started again since they were "
                                               "written; write the file again",
                                               name_of(FileId(key.first))));
    net::Packet reply;
    *reply.envelope.mutable_seal_reply()->mutable_state()->mutable_shape() = shape;
    context_.replies.answer(context_.replies.defer(request), Result<net::Packet>(std::move(reply)));
    return {};
  }
  Output& output = found->second;
  const bool is_begun = output.step != Step::kFilling;  // by a Seal that may have failed
  if (!is_same_shape(output.state.shape(), shape))
    return fail(Code::kInvalid,
                fmt::format("file {} was begun with another format or layout", name_of(FileId(key.first))));
  if (!asked.by_descriptor() && !is_begun)
    return fail(Code::kInvalid,
                fmt::format("file {} was written through descriptors here", name_of(FileId(key.first))));
  if (is_begun && (output.state.rows() != asked.rows() || output.state.bytes() != asked.bytes()))
    return fail(Code::kExists, fmt::format("file {} is sealed with {} rows and {} bytes", name_of(FileId(key.first)),
                                           output.state.rows(), output.state.bytes()));
  output.used = context_.now();
  output.waiting.push_back(context_.replies.defer(request));
  if (output.step == Step::kSealed) {
    end_seal(key, {});
  } else if (!is_begun || output.step == Step::kFailed) {
    set_tail(output.state, {asked.rows(), asked.bytes(), asked.data_tail_sum(), asked.index_tail_sum()});
    *output.state.mutable_published() = asked.file();
    output.uid = request.capability.uid;
    output.epoch = std::max(output.epoch, request.capability.epoch);
    output.files.writable.reset();  // ours must not count as somebody's who writes
    output.step = Step::kClosing;
    output.patience = context_.now() + kWritersPatience;
    look_for_writers(key, output);
  }
  return {};
}

void StandIn::look_for_writers(const FileKey& key, Output& output) {
  PIF_ASSERT(output.step == Step::kClosing && output.files.readable != nullptr, key.first, key.second);
  const component::Files& files = *output.files.readable;
  for (auto* const file : {&files.data, &files.sums, &files.index, &files.index_sums}) {
    if (*file == nullptr) continue;
    const auto written = (*file)->has_writers();
    if (!written) return end_seal(key, fail(written.error()));
    if (!*written) continue;
    output.next_look = context_.now() + kWritersLook;
    if (context_.now() < output.patience) return;
    return end_seal(key, fail(Code::kBusy, fmt::format("file {} is still open for writing in some process: it must "
                                                       "close it first",
                                                       name_of(FileId(key.first)))));
  }
  output.step = Step::kCopying;
  if (auto begun = copy_away(key, output); !begun) end_seal(key, begun);
}

Status StandIn::copy_away(const FileKey& key, Output& output) {
  PIF_TRY_VALUE(auto rows, absent_rows(output.state.shape(), output.epoch, kMayRead | kMayCreate, output.uid));
  const auto run = std::make_shared<RowsAway>(keeping_, std::move(rows), output.files.readable, tail_of(output.state),
                                              context_.view.index());
  run->start([this, key](const Status& status) { end_seal(key, status); });
  return {};
}

// Failed, it can be asked for again: who wrote cannot write any more.
void StandIn::end_seal(const FileKey& key, const Status& status) {
  const auto found = outputs_.find(key);
  PIF_ASSERT(found != outputs_.end() && found->second.step != Step::kFilling, key.first, key.second);
  Output& output = found->second;
  const auto waiting = std::exchange(output.waiting, {});
  output.used = context_.now();
  output.step = status ? Step::kSealed : Step::kFailed;
  if (status) {
    output.state.set_state(kSealed);
    output.files = {};
  }
  for (const ReplyToken token : waiting) {
    if (!status) {
      context_.replies.answer(token, status);
      continue;
    }
    net::Packet reply;
    *reply.envelope.mutable_seal_reply()->mutable_state() = output.state;
    context_.replies.answer(token, Result<net::Packet>(std::move(reply)));
  }
}

bool StandIn::is_over(const FileKey& key, const Output& output) {
  const bool is_busy = output.step == Step::kClosing || output.step == Step::kCopying;
  if (is_busy || context_.input_locks.is_worker(output.worker)) return false;
  // This LFS hears what becomes of the file if it has a component of it, too.
  const auto own = context_.components.find(FileId(key.first));
  if (own) return (*own)->state.state() == kCommitted;
  return own.error().code == Code::kStaleFile || context_.now() - output.used > kOutputUnused;
}

void StandIn::drop_old() {
  next_drop_ = context_.now() + kDropEvery;
  drop_spare_inputs(context_.now() - kInputUnused);
  std::erase_if(outputs_, [this](const auto& entry) { return is_over(entry.first, entry.second); });
}

void StandIn::tick() {
  std::erase_if(asks_, [this](const Ask& ask) { return serve(ask); });
  for (auto at = outputs_.begin(); at != outputs_.end();) {
    const auto here = at++;  // it may end
    if (here->second.step == Step::kClosing && context_.now() >= here->second.next_look)
      look_for_writers(here->first, here->second);
  }
  if (context_.now() >= next_drop_) drop_old();
}

Time StandIn::next_deadline() const {
  Time next = kNever;
  for (const Ask& ask : asks_) next = std::min(next, ask.patience);
  for (const auto& [key, output] : outputs_)
    if (output.step == Step::kClosing) next = std::min(next, output.next_look);
  return next;
}

}  // namespace pif::lfs
