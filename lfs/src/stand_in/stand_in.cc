#include "stand_in/stand_in.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "pif/base/assert.h"
#include "pif/base/timers.h"

namespace pif::lfs {
namespace {

constexpr Duration kViewPatience = std::chrono::seconds(5);      // with a view that is on its way
constexpr Duration kViewAskAgain = std::chrono::seconds(1);      // for it
constexpr Duration kWritersLook = std::chrono::milliseconds(5);  // whether an output has still writers
constexpr Duration kInputUnused = std::chrono::seconds(60);      // then it goes; who has it keeps it
constexpr Duration kOutputUnused = std::chrono::hours(1);        // of one whose worker has ended
constexpr Duration kDropEvery = std::chrono::seconds(1);         // what is not used is looked for
constexpr std::size_t kInputsMax = 512;                          // each has up to four files open
constexpr std::size_t kOutputsMax = 512;

std::uint32_t node_of(const proto::ComponentShape& shape) {
  return shape.layout().nodes(static_cast<int>(shape.index()));
}

std::string name_of_file(const proto::ComponentShape& shape) { return name_of(FileId(shape.file())); }

Status check_same_shape(const proto::ComponentState& state, const proto::ComponentShape& shape) {
  if (is_same_shape(state.shape(), shape)) return {};
  return fail(Code::kInvalid, fmt::format("file {} was begun with another format or layout", name_of_file(shape)));
}

Result<bool> has_writers(const component::Files& files) {
  for (auto* const file : {&files.data, &files.sums, &files.index, &files.index_sums}) {
    if (*file == nullptr) continue;
    PIF_TRY_VALUE(const bool is_written, (*file)->has_writers());
    if (is_written) return true;
  }
  return false;
}

}  // namespace

StandIn::StandIn(Keeping& keeping) : keeping_(keeping), context_(keeping.context), views_(keeping.context.fibers) {
  operations_.bind<&StandIn::attach>(*this);
  operations_.bind<&StandIn::seal>(*this);
  operations_.bind<&StandIn::gather>(*this);
  context_.space_makers.push_back(this);
  context_.view_watchers.push_back(this);
  context_.fibers.start<&StandIn::drop_unused>(*this);
}

const Handler* StandIn::find(const Request& request) const {
  const proto::Envelope& envelope = request.envelope();
  const bool is_one = (envelope.has_attach() && envelope.attach().has_instead_of()) ||
                      (envelope.has_seal() && is_stood_in(envelope.seal().shape())) ||
                      (envelope.has_gather() && is_stood_in(envelope.gather().shape()));
  return is_one ? operations_.find(envelope.op_case()) : nullptr;
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

Error StandIn::not_absent(const proto::ComponentShape& shape) const {
  return {Code::kOldView,
          fmt::format("{} takes part in view {}, so nobody stands in for it: start the tool again",
                      name_of_node(node_of(shape)), context_.view.index()),
          {}};
}

// The absent LFS gathers when it is rebuilt.
Status StandIn::gather(const Request&, const proto::Gather& asked) {
  PIF_TRY(context_.check_view(asked.view()));
  return is_absent(asked.shape()) ? Status() : Status(fail(not_absent(asked.shape())));
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

Status StandIn::await_absence(const proto::ComponentShape& shape) {
  const Time patience = context_.now() + kViewPatience;
  while (!is_absent(shape)) {
    if (context_.now() >= patience) return fail(not_absent(shape));
    context_.peer_list.want();
    views_.wait(std::min(patience, context_.now() + kViewAskAgain));
  }
  return {};
}

Result<net::Packet> StandIn::attach(const Request& request, const proto::Attach& asked) {
  using Via = net::Identity::Via;
  const auto via = context_.world.messenger.identity(request.peer).via;
  if (via != Via::kUnix && via != Via::kSimulated)
    return fail(Code::kUnsupported,
                "descriptors travel over Unix sockets only: ask those who keep the parity of an absent LFS");
  PIF_TRY_VALUE(proto::ComponentShape shape, shape_asked(request));
  if (asked.has_create()) shape.set_owner(request.capability.uid);
  PIF_TRY(await_absence(shape));
  if (!asked.has_create()) {
    PIF_TRY_VALUE(const InputPtr input, input_of(request, shape));
    return descriptors(request, input->state, *input->files.readable);
  }
  PIF_TRY_VALUE(const OutputPtr output, output_of(request, shape));
  return descriptors(request, output->state, *output->files.writable);
}

Result<net::Packet> StandIn::descriptors(const Request& request, const proto::ComponentState& state,
                                         component::Files& files) {
  net::Packet reply = Replies::reply(request);
  *reply.envelope.mutable_attach_reply()->mutable_state() = state;
  PIF_TRY_VALUE(reply.handles, component::share(files));
  return reply;
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

Result<StandIn::InputPtr> StandIn::input_of(const Request& request, const proto::ComponentShape& shape) {
  const FileLength file_length = file_length_of(request.envelope().attach().file_length());
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY(check_file_length(made.format, file_length));
  const Key key{shape.file(), shape.index(), file_length.records, file_length.bytes};
  if (const auto found = inputs_.find(key); found != inputs_.end()) {
    const InputPtr input = found->second;
    while (!input->restored) input->ended.wait();
    PIF_TRY(*input->restored);
    input->used = context_.now();
    return input;
  }
  PIF_TRY_VALUE(auto rows, absent_rows(shape, request.capability.epoch, kMayRead, context_.config.uid));
  PIF_TRY_VALUE(const InputPtr input, begin_input(shape, file_length, rows));
  input->state.set_epoch(request.capability.epoch);
  inputs_[key] = input;
  input->restored = restore(*input, std::move(rows), file_length);
  PIF_ASSERT(inputs_.contains(key) && inputs_[key] == input, std::get<0>(key), std::get<1>(key));
  if (!*input->restored) inputs_.erase(key);
  input->used = context_.now();
  input->ended.notify();
  PIF_TRY(*input->restored);
  return input;
}

Result<StandIn::InputPtr> StandIn::begin_input(const proto::ComponentShape& shape, const FileLength& file_length,
                                               AbsentRowsPtr rows) {
  if (inputs_.size() >= kInputsMax && !drop_spare_inputs(context_.now()))
    return fail(Code::kBusy,
                fmt::format("rows of {} files are being restored here for tools: try again later", inputs_.size()));
  PIF_TRY(context_.check_space(RowsBack::bytes_of(*rows, file_length)));
  auto input = std::make_shared<Input>(context_.fibers);
  PIF_TRY_VALUE(input->files,
                make_nameless_files(context_.world.storage, context_.config.root, rows->made, ++files_made_));
  input->state.set_state(kCommitted);
  *input->state.mutable_shape() = shape;
  *input->state.mutable_published() = wire::proto_of(file_length);
  return input;
}

Status StandIn::restore(Input& input, AbsentRowsPtr rows, const FileLength& file_length) {
  const auto& shape = rows->shape;
  spdlog::info("stands in for {}: restores its rows of file {}", name_of_node(node_of(shape)), shape.file());
  const auto back =
      std::make_shared<RowsBack>(keeping_, std::move(rows), file_length, RowsBack::Place{input.files.writable, {}, 0});
  PIF_TRY_VALUE(const component::Tail tail, back->run());
  set_tail(input.state, tail);
  input.files.writable.reset();
  return {};
}

bool StandIn::drop_spare_inputs(Time unused_since) {
  return std::erase_if(inputs_, [&](const auto& entry) {
           const Input& input = *entry.second;
           return input.restored && input.used <= unused_since;
         }) > 0;
}

// ---- outputs -------------------------------------------------------------------------------------------------------

Result<StandIn::OutputPtr> StandIn::output_of(const Request& request, const proto::ComponentShape& shape) {
  PIF_TRY(context_.check_space(0));
  const FileKey key{shape.file(), shape.index()};
  if (const auto own = context_.components.find(FileId(key.first)); !own && own.error().code != Code::kNotFound)
    return fail(own.error());
  if (!outputs_.contains(key)) {
    PIF_TRY_VALUE(OutputPtr made, begin_output(shape));
    outputs_[key] = std::move(made);
  }
  const OutputPtr output = outputs_[key];
  PIF_TRY(check_same_shape(output->state, shape));
  const std::uint64_t epoch = request.capability.epoch;
  if (epoch < output->epoch)
    return fail(Code::kBadCapability, fmt::format("the capability has epoch {}, file {} has {}: open the file again",
                                                  epoch, name_of_file(shape), output->epoch));
  if (output->step != Step::kFilling)
    return fail(Code::kExists,
                fmt::format("file {} is complete here: it cannot be written any more", name_of_file(shape)));
  output->epoch = epoch;
  output->worker = request.peer;
  output->used = context_.now();
  PIF_ASSERT(output->files.writable != nullptr, key.first, key.second);
  return output;
}

Result<StandIn::OutputPtr> StandIn::begin_output(const proto::ComponentShape& shape) {
  if (outputs_.size() >= kOutputsMax)
    return fail(Code::kBusy, fmt::format("{} files are being written here for absent LFSs", outputs_.size()));
  auto output = std::make_shared<Output>(context_.fibers);
  PIF_TRY_VALUE(const auto made, shape_of(shape));
  PIF_TRY_VALUE(output->files, make_nameless_files(context_.world.storage, context_.config.root, made, ++files_made_));
  output->state.set_state(kOpen);
  *output->state.mutable_shape() = shape;
  return output;
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

Status StandIn::check_seal(const Output& output, const proto::Seal& asked) {
  const proto::ComponentShape& shape = asked.shape();
  const bool is_begun = output.step != Step::kFilling;  // by a Seal that may have failed
  PIF_TRY(check_same_shape(output.state, shape));
  if (!asked.by_descriptor() && !is_begun)
    return fail(Code::kInvalid, fmt::format("file {} was written through descriptors here", name_of_file(shape)));
  if (is_begun && (output.state.rows() != asked.rows() || output.state.bytes() != asked.bytes()))
    return fail(Code::kExists, fmt::format("file {} is sealed with {} rows and {} bytes", name_of_file(shape),
                                           output.state.rows(), output.state.bytes()));
  return {};
}

Result<net::Packet> StandIn::seal(const Request& request, const proto::Seal& asked) {
  const proto::ComponentShape& shape = asked.shape();
  if (!is_absent(shape)) return fail(not_absent(shape));
  PIF_TRY(context_.check_present(shape));
  PIF_TRY(check_seal(asked));
  net::Packet reply = Replies::reply(request);
  proto::ComponentState& state = *reply.envelope.mutable_seal_reply()->mutable_state();
  const auto found = outputs_.find({shape.file(), shape.index()});
  if (found == outputs_.end()) {
    *state.mutable_shape() = shape;
    if (asked.rows() == 0) return reply;
    return fail(Code::kNotFound, fmt::format("file {} has no rows here: this LFS was started again since they were "
                                             "written; write the file again",
                                             name_of_file(shape)));
  }
  const OutputPtr output = found->second;
  PIF_TRY(check_seal(*output, asked));
  output->used = context_.now();
  if (output->step == Step::kSealing) {
    while (output->step == Step::kSealing) output->ended.wait();
  } else if (output->step != Step::kSealed) {
    bring_away(*output, request);
  }
  PIF_TRY(output->sealed);
  state = output->state;
  return reply;
}

void StandIn::bring_away(Output& output, const Request& request) {
  const proto::Seal& asked = request.envelope().seal();
  PIF_ASSERT(output.step == Step::kFilling || output.step == Step::kFailed, output.step);
  PIF_ASSERT(output.files.readable != nullptr, asked.shape().file());
  set_tail(output.state, {asked.rows(), asked.bytes(), asked.data_tail_sum(), asked.index_tail_sum()});
  *output.state.mutable_published() = asked.file();
  output.uid = request.capability.uid;
  output.epoch = std::max(output.epoch, request.capability.epoch);
  output.files.writable.reset();  // ours must not count as somebody's who writes
  output.step = Step::kSealing;
  output.sealed = await_writers(output);
  if (output.sealed) output.sealed = copy_away(output);
  output.used = context_.now();
  output.step = output.sealed ? Step::kSealed : Step::kFailed;
  if (output.sealed) {
    output.state.set_state(kSealed);
    output.files = {};
  }
  output.ended.notify();
}

Status StandIn::await_writers(const Output& output) {
  const Time patience = context_.now() + kWritersPatience;
  for (;;) {
    PIF_TRY_VALUE(const bool is_written, has_writers(*output.files.readable));
    if (!is_written) return {};
    if (context_.now() >= patience)
      return fail(Code::kBusy, fmt::format("file {} is still open for writing in some process: it must close it first",
                                           name_of_file(output.state.shape())));
    context_.fibers.sleep_until(context_.now() + kWritersLook);
  }
}

Status StandIn::copy_away(const Output& output) {
  PIF_TRY_VALUE(auto rows, absent_rows(output.state.shape(), output.epoch, kMayRead | kMayCreate, output.uid));
  RowsAway away(keeping_, std::move(rows), output.files.readable, tail_of(output.state), context_.view.index());
  return away.run();
}

bool StandIn::is_over(const FileKey& key, const Output& output) {
  if (output.step == Step::kSealing || context_.input_locks.is_worker(output.worker)) return false;
  // This LFS hears what becomes of the file if it has a component of it, too.
  const auto own = context_.components.find(FileId(key.first));
  if (own) return (*own)->state.state() == kCommitted;
  return own.error().code == Code::kStaleFile || context_.now() - output.used > kOutputUnused;
}

void StandIn::drop_unused() {
  for (;;) {
    context_.fibers.sleep_until(context_.now() + kDropEvery);
    drop_spare_inputs(context_.now() - kInputUnused);
    for (auto at = outputs_.begin(); at != outputs_.end();)
      at = is_over(at->first, *at->second) ? outputs_.erase(at) : std::next(at);
  }
}

}  // namespace pif::lfs
