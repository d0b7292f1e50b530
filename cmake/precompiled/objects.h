// What nearly every file above api/ includes beyond that: the objects of the API and how they are asked for.
#include "api/exchange/exchange.h"
#include "api/json/json.h"
#include "api/object/event.h"
#include "api/object/lease.h"
#include "api/object/node.h"
#include "api/object/pod.h"
