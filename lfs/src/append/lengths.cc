#include "append/lengths.h"

#include <fmt/format.h>

#include "append/acting.h"
#include "context/has_server.h"
#include "pif/base/assert.h"
#include "pif/parity/deputy.h"
#include "store/published_tickets.h"

namespace pif::lfs {

Lengths::Lengths(LfsContext& context, AppendCoordinator& coordinator, const Aside& aside)
    : context_(context), coordinator_(coordinator), aside_(aside) {
  context.operations.bind<&Lengths::length>(*this);
}

// Without a lease others may do without this LFS already. Without a server nobody ever does.
bool Lengths::may_answer_alone() const {
  return !has_server(context_.config) || context_.view.has_lease(context_.world.messenger.clock().boottime());
}

bool Lengths::aside_has_rows(FileId file) const {
  return aside_.has_rows(context_.world.storage, context_.config.root, file);
}

Status Lengths::check_not_returning() const {
  if (context_.view.state_of(context_.config.node) != wire::kViewReturning) return {};
  return fail(Code::kUnavailable,
              fmt::format("{} is returning, and does not know all lengths yet: others answer", context_.config.name));
}

// Of a file with parity.
Status Lengths::check_may_answer(const ComponentPtr& component, const proto::Length& asked) {
  const Component& c = *component;
  const auto& shape = c.state.shape();
  const auto& nodes = shape.layout().nodes();
  const LfsIndex deputy = parity::deputy_of(c.layout);
  PIF_ASSERT(keeps_parity(shape) && static_cast<int>(deputy) < nodes.size(), c.file.value, deputy, nodes.size());
  PIF_TRY(context_.check_view(asked.view()));
  PIF_TRY(context_.check_present(shape));
  PIF_TRY(check_not_returning());
  if (asked.noted()) return check_deputy(component, asked);
  PIF_TRY_VALUE(const LfsIndex acting, acting_sequencer(c.layout, shape, context_.view));
  if (acting != shape.index())
    return fail(Code::kInvalid, fmt::format("the length of file {} is known at LFS {} of it in view {}, this is LFS {}",
                                            c.file.value, acting, context_.view.index(), shape.index()));
  // An absent deputy notes nothing before LFS 0 goes by a view that has it back, and the other way round.
  const bool is_alone = acting == deputy || context_.view.is_absent(nodes[static_cast<int>(deputy)]);
  if (asked.of_deputy() && asked.view() != 0) {
    if (!coordinator_.is_publishing(c.file)) return {};
    return fail(Code::kRetry, fmt::format("the length of file {} is about to grow", c.file.value));
  }
  if (asked.view() != 0 || asked.at_rest()) {
    PIF_TRY(coordinator_.check_settled(component));
    if (!asked.at_rest() || coordinator_.is_at_rest(c.file)) return {};
    return fail(Code::kRetry, fmt::format("file {} is being appended to", c.file.value));
  }
  if (is_alone || may_answer_alone()) return {};
  coordinator_.tell_later(component);  // the others turn to the deputy, which may wait for that
  return fail(Code::kUnavailable, fmt::format("{} has not heard from the PIF Server for so long that others may do "
                                              "without it: its deputy answers",
                                              context_.config.name));
}

// LFS 0 may come back without having published what is only noted: readers are not shown that before LFS 0 says so, or
// others do without it.
Status Lengths::check_deputy(const ComponentPtr& component, const proto::Length& asked) const {
  const auto& state = component->state;
  if (asked.view() != 0) {
    if (!coordinator_.is_publishing(component->file)) return {};
    return fail(Code::kRetry, fmt::format("the length of file {} is about to grow", component->file.value));
  }
  const bool is_open = is_longer(file_length_of(state.noted().file_length()), file_length_of(state.published()));
  if (!is_open || stands_for_first(*component)) return {};
  return fail(Code::kRetry,
              fmt::format("{} does not know yet whether LFS 0 of file {} has published what it noted last",
                          context_.config.name, component->file.value));
}

bool Lengths::stands_for_first(const Component& component) const {
  const auto& shape = component.state.shape();
  return shape.index() != 0 && context_.view.state_of(shape.layout().nodes(0)) != wire::kViewMember;
}

// What a deputy has in its catalogue as published is so, of whoever's publication. While it stands for LFS 0, what that
// noted is published with it.
Sequencer::Publication Lengths::newest_of(const Component& component, bool counts_noted) const {
  const Sequencer::Publication published = publication_of(component.state);
  if (component.state.shape().index() == 0 || (!counts_noted && !stands_for_first(component))) return published;
  const Sequencer::Publication noted = publication_of(component.state.noted());
  return is_longer(noted.file_length, published.file_length) ? noted : published;
}

Result<FileLength> Lengths::length_at_rest(const ComponentPtr& component) {
  proto::Length asked;
  asked.set_view(context_.view.index());
  asked.set_at_rest(true);
  PIF_TRY(check_may_answer(component, asked));
  return newest_of(*component, false).file_length;
}

Result<net::Packet> Lengths::length(const Request& request, const proto::Length& asked) {
  auto component = context_.published(request, FileId(asked.file()));
  net::Packet reply = Replies::reply(request);
  auto* out = reply.envelope.mutable_length_reply();
  out->set_view(context_.view.index());
  // A file that never had a record has no component: it is empty. So has one with parity that the deputy sequenced
  // while this LFS was absent; nobody here knows which it is.
  if (!component && component.error().code == Code::kNotFound) {
    if (aside_has_rows(FileId(asked.file())))
      return fail(Code::kCorrupt,
                  fmt::format("{} has files of a component of file {} that its catalogue does not know, "
                              "and has put them aside: pif scrub makes it anew, if it has parity",
                              context_.config.name, asked.file()));
    PIF_TRY(context_.check_view(asked.view()));
    const bool has_parity = asked.noted() || asked.view() != 0;  // nobody else says so
    if (has_parity) PIF_TRY(check_not_returning());
    if (has_parity ? context_.view.is_absent(context_.config.node) : !may_answer_alone())
      return fail(Code::kNotFound, fmt::format("{} has nothing of file {}, and may lack something: the PIF Server "
                                               "has not said for a while that it is a member",
                                               context_.config.name, asked.file()));
    *out->mutable_file_length() = wire::proto_of(FileLength());
    return reply;
  }
  if (!component) return fail(std::move(component.error()));
  const auto& state = (*component)->state;
  const bool has_parity = keeps_parity(state.shape());
  if (has_parity) PIF_TRY(check_may_answer(*component, asked));
  if (!has_parity && state.shape().index() != 0)
    return fail(Code::kInvalid,
                fmt::format("the length is known at LFS 0 of the file, this is LFS {}", state.shape().index()));
  const Sequencer::Publication newest = newest_of(**component, asked.noted() && asked.at_rest());
  *out->mutable_file_length() = wire::proto_of(newest.file_length);
  if (has_parity) {
    *out->mutable_published_tickets() = state.published_tickets();
    add_ticket(*out->mutable_published_tickets(), newest.generation, newest.ticket);
  }
  out->set_generation(newest_generation(state));
  return reply;
}

}  // namespace pif::lfs
