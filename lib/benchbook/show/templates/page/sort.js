(function () {
  "use strict";
  function key(cell) {
    var text = cell ? cell.textContent.trim().replace(/\u2212/g, "-").replace(/,/g, "") : "";
    var number = parseFloat(text);
    return isNaN(number) || /^\d{4}-/.test(text) ? text : number;
  }
  function order(a, b) {
    if (typeof a === "number" && typeof b === "number") { return a - b; }
    if (typeof a !== typeof b) { return typeof a === "number" ? -1 : 1; }
    return a.localeCompare(b);
  }
  var narrow = window.matchMedia("(max-width: 34rem)");
  function cards() {
    document.querySelectorAll("table.sortable").forEach(function (table) {
      var labels = Array.from(table.tHead.rows[0].cells).map(function (cell) { return cell.textContent; });
      table.classList.toggle("cards", narrow.matches);
      // What is shown as a card is still a table to those who listen to it.
      var roles = [["rowgroup", [table.tHead, table.tBodies[0]]], ["row", table.rows]];
      roles.push(["table", [table]], ["columnheader", table.tHead.rows[0].cells]);
      roles.push(["rowheader", table.querySelectorAll("tbody th")], ["cell", table.querySelectorAll("td")]);
      roles.forEach(function (pair) {
        Array.from(pair[1]).forEach(function (part) {
          if (narrow.matches) { part.setAttribute("role", pair[0]); } else { part.removeAttribute("role"); }
        });
      });
      table.querySelectorAll("td").forEach(function (cell) { cell.dataset.label = labels[cell.cellIndex]; });
    });
  }
  if (narrow.matches) { cards(); }
  narrow.addEventListener("change", cards);
  document.querySelectorAll("table.sortable").forEach(function (table) {
    if (table.tBodies[0].rows.length < 3) { return; }
    table.querySelectorAll("thead th").forEach(function (heading, column) {
      var button = document.createElement("button");
      button.type = "button";
      while (heading.firstChild) { button.appendChild(heading.firstChild); }
      heading.appendChild(button);
      button.addEventListener("click", function () {
        var down = heading.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        Array.from(table.tBodies[0].rows)
          .map(function (row, place) { return [key(row.cells[column]), place, row]; })
          .sort(function (a, b) { return (down ? -1 : 1) * order(a[0], b[0]) || a[1] - b[1]; })
          .forEach(function (entry) { table.tBodies[0].appendChild(entry[2]); });
      });
    });
  });
})();
