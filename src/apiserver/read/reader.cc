#include "apiserver/read/reader.h"

#include <algorithm>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr Duration kVersionWait = seconds(3);
constexpr std::size_t kListsWaitingMax = 1'024;

api::Status too_large(store::Revision wanted, store::Revision present) {
  api::Status status = api::retry_status(
      ErrorCode::kTimeout,
      fmt::format("Too large resource version: {}, current: {}", wanted.number(), present.number()), 1);
  status.make_details().causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  return status;
}

api::Status expired_token() {
  return make_error(ErrorCode::kExpired,
                    "The provided continue parameter is too old to display a consistent list result. You must start a "
                    "new list without the continue parameter.");
}

/// A list says what it lacks.
void warn_of_unreadable(Exchange& exchange, const ResourceCache& cache, std::string_view prefix) {
  std::vector<std::string> keys;
  const auto& all = cache.unreadable();
  for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at) {
    if (keys.size() == kLeftOutTold) break;
    keys.push_back(cache.resource().storage + at->first);
  }
  if (!keys.empty()) exchange.warnings.push_back(left_out_warning(keys));
}

struct ListSize {
  std::size_t objects = 0;
  std::size_t bytes = 0;

  void add(std::size_t object_bytes) {
    ++objects;
    bytes += object_bytes;
  }

  bool is_long() const { return objects > kLongList || bytes > kLongListBytes; }
};

}  // namespace

void Reader::when_reached(const ExchangePtr& exchange, store::Revision revision, Ready ready) {
  if (revision <= core_.cache.revision()) return ready();
  const auto entry = waiting_.emplace(revision, Waiting{exchange, std::move(ready), {}});
  entry->second.timer = core_.timers.at(core_.now.mono + kVersionWait, [this, entry] {
    const ExchangePtr late = entry->second.exchange;
    const store::Revision wanted = entry->first;
    waiting_.erase(entry);
    late->fail(too_large(wanted, core_.cache.revision()));
  });
}

void Reader::on_progress() {
  while (!waiting_.empty() && waiting_.begin()->first <= core_.cache.revision()) {
    Waiting reached = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    core_.timers.cancel(reached.timer);
    if (!reached.exchange->finished()) reached.ready();
  }
}

void Reader::get(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, false);
  if (!options) return exchange->fail(options.error());
  const Resource& resource = *exchange->route.resource;
  auto rendering = Rendering::of(resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  when_reached(exchange, options->version.value_or(store::Revision(0)),
               [this, exchange, &resource, rendering = *std::move(rendering)] {
                 const Route& route = exchange->route;
                 const ObjectPtr object = core_.cache.of(resource).find(object_key(route.ns, route.name));
                 if (!object) return exchange->fail(api::not_found_status(resource.group_resource(), route.name));
                 if (!object->unknown_fields.empty()) {
                   exchange->warnings.push_back(unknown_fields_warning(object->unknown_fields));
                 }
                 exchange->answer_object(200, rendering.object(*object, core_.now.wall), rendering.document(*object));
               });
}

void Reader::watch(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, true);
  if (!options) return exchange->fail(options.error());
  auto selection = parse_selection(exchange->route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  const bool waits = options->send_initial_events.value_or(false) && options->version;
  when_reached(exchange, waits ? *options->version : store::Revision(0),
               [this, exchange, options = *options, selection = *std::move(selection),
                rendering = *std::move(rendering)]() mutable {
                 hub_.open(exchange, std::move(rendering), std::move(selection), options);
               });
}

void Reader::list(const ExchangePtr& exchange) {
  const auto options = parse_list_options(exchange->target, false);
  if (!options) return exchange->fail(options.error());
  auto selection = parse_selection(exchange->route, exchange->target);
  if (!selection) return exchange->fail(selection.error());
  auto rendering = Rendering::of(*exchange->route.resource, exchange->form, exchange->target);
  if (!rendering) return exchange->fail(rendering.error());
  Page page{*std::move(rendering), *std::move(selection), options->limit, std::nullopt, {}};
  if (!options->continue_token.empty()) {
    const Result<ContinueToken> token = decode_continue(options->continue_token);
    if (!token) return exchange->fail(token.error());
    page.at = token->revision;
    page.start_after = token->start_after;
    if (token->revision > core_.cache.revision() && !core_.store.is_shared()) return exchange->fail(expired_token());
    return when_reached(exchange, token->revision,
                        [this, exchange, page = std::move(page)]() mutable { show(exchange, std::move(page)); });
  }
  const store::Revision version = options->version.value_or(store::Revision(0));
  const bool exact = options->match == VersionMatch::kExact ||
                     (options->match == VersionMatch::kUnset && options->limit != 0 && version != store::Revision(0));
  when_reached(exchange, version, [this, exchange, exact, version, page = std::move(page)]() mutable {
    if (exact) page.at = version;
    show(exchange, std::move(page));
  });
}

/// Objects as they stand, in key order from just behind `start_after`, that the selection may match, until `visit`
/// returns false; where a name or a node narrows it, no others.
void Reader::visit_candidates(const ResourceCache& cache, const Selection& selection, std::string_view start_after,
                              const std::function<bool(const ObjectPtr&)>& visit) {
  const auto node = selection.first_field();
  if (const auto name = selection.name(); name && (!selection.ns.empty() || !cache.resource().namespaced())) {
    const ObjectPtr object = cache.find(object_key(selection.ns, *name));
    if (object && object->key > start_after) visit(object);
  } else if (node && cache.indexes_nodes()) {
    const ObjectMap* there = cache.on_node(*node);
    if (there == nullptr) return;
    for (auto at = there->upper_bound(start_after); at != there->end(); ++at) {
      if (!visit(at->second)) return;
    }
  } else {
    cache.visit(selection.key_prefix(), start_after, visit);
  }
}

std::vector<ObjectPtr> Reader::select(const Resource& resource, const Selection& selection) const {
  std::vector<ObjectPtr> found;
  visit_candidates(core_.cache.of(resource), selection, {}, [&](const ObjectPtr& object) {
    if (selection.matches(*object)) found.push_back(object);
    return true;
  });
  return found;
}

/// Whether more than kLongList objects, or more than kLongListBytes of them, are looked at.
bool Reader::looks_at_much(const ResourceCache& cache, const Page& page) {
  const bool first_ones = page.selection.is_everything() && page.limit != 0;
  ListSize size;
  visit_candidates(cache, page.selection, page.start_after, [&](const ObjectPtr& object) {
    if (first_ones && size.objects == page.limit) return false;
    size.add(object->text->size());
    return !size.is_long();
  });
  return size.is_long();
}

void Reader::show(const ExchangePtr& exchange, Page page) {
  const Resource& resource = *exchange->route.resource;
  const ResourceCache& cache = core_.cache.of(resource);
  const bool is_long = looks_at_much(cache, page);
  if (is_long && long_lists_ >= kLongListsMax) {
    if (waiting_lists_.size() >= kListsWaitingMax) {
      return exchange->fail(api::retry_status(ErrorCode::kTooManyRequests, "too many long lists are waiting", 1));
    }
    waiting_lists_.push_back({exchange, std::move(page)});
    return;
  }
  const bool present = !page.at || *page.at == core_.cache.revision();
  if (!present && !cache.covers(*page.at)) return show_from_store(exchange, std::move(page));
  warn_of_unreadable(*exchange, cache, page.selection.key_prefix());
  std::vector<ObjectPtr> objects;
  std::size_t behind = 0;
  const bool first_ones = page.selection.is_everything() && page.limit != 0;
  const std::size_t most = first_ones ? page.limit : static_cast<std::size_t>(-1);
  const auto add = [&](const ObjectPtr& object) {
    if (objects.size() < most) {
      objects.push_back(object);
    } else {
      ++behind;
    }
    return true;
  };
  const store::Revision at = present ? core_.cache.revision() : *page.at;
  if (present) {
    visit_candidates(cache, page.selection, page.start_after, add);
  } else {
    cache.visit_at(at, page.selection.key_prefix(), page.start_after, add);
  }
  begin(ListJob(exchange, {std::move(page.rendering), std::move(page.selection), page.limit, at}, std::move(objects),
                behind),
        is_long);
}

void Reader::show_from_store(const ExchangePtr& exchange, Page page) {
  const Resource& resource = core_.cache.of(*exchange->route.resource).resource();
  store::Range range{resource.storage + page.selection.key_prefix(),
                     page.start_after.empty() ? std::string() : resource.storage + page.start_after, 0, page.at};
  core_.store.range(
      std::move(range), [this, exchange, &resource, page = std::move(page)](Result<store::RangeResult> result) mutable {
        if (exchange->finished()) return;
        if (!result) {
          const bool gone = result.error().code == ErrorCode::kExpired;
          return exchange->fail(gone ? expired_token() : api::Status(result.error()));
        }
        ListSize size;
        for (const store::Entry& entry : result->entries) size.add(entry.value->size());
        begin(ListJob(exchange, {std::move(page.rendering), std::move(page.selection), page.limit, *page.at}, resource,
                      std::move(result->entries)),
              size.is_long());
      });
}

void Reader::begin(ListJob job, bool is_long) {
  if (is_long) ++long_lists_;
  slices_.add([this, is_long, job = std::move(job)](SliceBudget& budget) mutable {
    if (!job.step(budget, core_.now.wall)) return false;
    if (is_long) {
      --long_lists_;
      begin_waiting();
    }
    return true;
  });
}

void Reader::begin_waiting() {
  while (!waiting_lists_.empty() && long_lists_ < kLongListsMax) {
    WaitingList next = std::move(waiting_lists_.front());
    waiting_lists_.pop_front();
    if (!next.exchange->finished()) show(next.exchange, std::move(next.page));
  }
}

void Reader::answer(const ExchangePtr& exchange, const Rendering& rendering, std::vector<ObjectPtr> objects) {
  ListSize size;
  for (const ObjectPtr& object : objects) size.add(object->text->size());
  begin(ListJob(exchange, {rendering, {}, 0, core_.cache.revision()}, std::move(objects), 0), size.is_long());
}

}  // namespace spillway::apiserver
