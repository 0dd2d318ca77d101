// What the type checker has to know of the page beside its modules (tests/test_clients.py runs it).  Elements are found by their ids and classes, so that any of
// their properties may be read.  What the API answers is by path, with the types that clients/js has from the OpenAPI document.
import type * as Api from "../../clients/js/operations";

interface Answers {
  "/api/archives": Api.ArchivePage;
  "/api/examples": Api.ExamplePage;
  "/api/facts": Api.FactPage;
  "/api/graph": Api.EdgePage;
  "/api/instructions": Api.InstructionList;
  "/api/jobs": Api.JobPage;
  "/api/models": Api.ModelNames;
  "/api/recall/unhelpful": Api.UnhelpfulPage;
  "/api/retention": Api.RetentionPolicy;
  "/api/search": Api.SearchResults;
  "/api/sessions": Api.SessionPage;
}

export type Answer<Path> = Path extends keyof Answers ? Answers[Path] : any;
export type Item<Path> = Path extends keyof Answers ? (Answers[Path] extends { items: (infer One)[] } ? One : any) : any;

declare global {
  interface EventTarget {
    [name: string]: any;
  }
  var DOMPurify: any, Diff: any, katex: any, zip: any;
}
